//! Questions while it runs.

use super::*;

#[test]
fn a_gateway_that_is_not_there_is_said() {
    let output = gateway("ctl not-there show", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("no gateway called not-there is running"), "{errors}");
}

/// Docs name the program; an option of the gateway alone is not enough for it.
#[test]
fn an_option_without_its_command_is_told_where_it_belongs() {
    let output = gateway("--lan eth1 --wan eth2 --rate 10mbit", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("bluewater-gateway run --lan"), "{errors}");
}

#[test]
fn metrics_want_a_port_and_say_so() {
    let output = gateway("run --lan a --wan b --rate 1mbit --metrics 127.0.0.1:9477", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("PORT, which is at 127.0.0.1, as in 9477"), "{errors}");
}

#[test]
fn metrics_are_served_on_loopback_while_it_runs() {
    if !allowed() {
        return;
    }
    let script = format!("{GATEWAY} bulk 100.64.0.2 --flows 2 --time 2s; cat");
    let mut gateway = Command::new(GATEWAY)
        .args("shell --quiet --metrics 0 --rate 8mbit --aqm blue --ecn --far".split(' '))
        .arg(format!("{GATEWAY} sink"))
        .args(["--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(gateway.stderr.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    thread::sleep(Duration::from_millis(1900));
    let answer = http(&url, "GET /metrics HTTP/1.1\r\nHost: localhost:1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let value = |name: &str| -> f64 {
        let line = answer.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        line.trim().parse().unwrap_or_else(|_| panic!("{name} in {answer}"))
    };
    let way = "{queue=\"up\"}";
    assert!(value(&format!("bluewater_departures_total{way}")) > 100.0);
    assert!((0.0..=1.0).contains(&value("bluewater_signal{queue=\"up\",name=\"p_m\"}")));
    assert_eq!(value(&format!("bluewater_conserved{way}")), 1.0);
    assert!(answer.ends_with("# EOF\n"));
    let head = http(&url, "HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("Content-Type: application/openmetrics-text"), "{head}");
    assert!(http(&url, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    let by_name = http(&url, "GET /metrics HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n");
    assert!(by_name.starts_with("HTTP/1.1 403"), "a page elsewhere reads it: {by_name}");
    assert_eq!(http(&url, &"x".repeat(5000)), "", "too long: cut off");
    drop(gateway.stdin.take());
    assert!(gateway.wait().unwrap().success());
}
