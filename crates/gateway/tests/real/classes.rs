//! A tree of classes between two interfaces.

use super::*;

const TREE: &str = r#"default = "rest"
[[class]]
name = "line"
rate = "6mbit"
[[class]]
name = "anna"
parent = "line"
rate = "2mbit"
ceil = "6mbit"
address = ["10.9.0.1", "fd09::/64"]
[[class]]
name = "bela"
parent = "line"
rate = "3mbit"
address = ["10.9.0.8/30"]
aqm = "cake"
[[class]]
name = "rest"
parent = "line"
rate = "500kbit"
"#;

/// Bela never has more than her rate, and Anna borrows what is left of the line. Nothing that is assured is
/// missing; on a busy machine TCP may get less, so half of it has to do. Strangers have the default.
#[test]
fn customers_get_their_rates_and_borrow() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let [log, tree, file] = ["log", "tree.toml", "run.arr"].map(scratch);
        fs::write(&tree, TREE).unwrap();
        let options = format!(
            "--rate 8mbit --delay 5ms --aqm fq-codel --plane {plane} --classes {} --record {}",
            tree.display(),
            file.display()
        );
        let mut arguments = vec!["classes.sh", GATEWAY, log.to_str().unwrap()];
        arguments.extend(options.split_whitespace());
        let output = in_namespace(plane, &arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{plane}: {errors}");
        let text = String::from_utf8_lossy(&output.stdout);
        let shown: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        // What a class had between two looks: bits a second, and packets that were borrowed.
        let between = |i: usize, name: &str| {
            let [from, to] = [&shown[i], &shown[i + 1]];
            let count = |state: &Value, key: &str| {
                state["queues"][0]["classes"][key][name].as_f64().unwrap()
            };
            let since = |key: &str| count(to, key) - count(from, key);
            let seconds = to["time_s"].as_f64().unwrap() - from["time_s"].as_f64().unwrap();
            // A burst, and the packet at which the look came.
            let most = move |rate: f64| rate * seconds + 8.0 * 2.0 * 1600.0;
            (8.0 * since("departures_bytes"), since("borrowed"), most, seconds)
        };
        let (anna, _, most, seconds) = between(0, "anna");
        let (bela, borrowed, ..) = between(0, "bela");
        assert!((1.5e6 * seconds..=most(3e6)).contains(&bela), "{plane}: {bela} of {}", most(3e6));
        assert_eq!(borrowed, 0.0, "her ceil is her rate");
        assert!(1e6 * seconds < anna && anna + bela <= most(6e6), "{plane}: {anna}, {bela}");
        let (alone, borrowed, most, seconds) = between(1, "anna");
        // Bela's sockets still send what was written to them.
        let rest = between(1, "bela").0;
        assert!(3e6 * seconds < alone && alone + rest <= most(6e6), "{plane}: {alone}, {rest}");
        assert!(borrowed > 100.0, "{borrowed}");
        let (stranger, _, most, seconds) = between(2, "rest");
        assert!((25e4 * seconds..=most(5e5)).contains(&stranger), "{plane}: {stranger}");

        let (_, [up, down]) = read(&log);
        let replayed = gateway(&format!("replay {}", file.display()), &[]);
        let told = String::from_utf8_lossy(&replayed.stderr);
        assert!(replayed.status.success() && told.contains("the same decisions"), "{told}");
        for way in [&up, &down] {
            assert_eq!((&way["conserved"], &way["refused"]), (&true.into(), &0.into()), "{way}");
            assert!(told.contains(way["decision_hash"].as_str().unwrap()), "{told}");
        }
        [&tree, &file].into_iter().for_each(|path| _ = fs::remove_file(path));
    }
}

/// At a gateway with classes: what may change does, and what would be wrong is refused in words.
#[test]
fn what_does_not_go_with_classes_is_refused() {
    if !interfaces_allowed() {
        return;
    }
    let tree = scratch("tree.toml");
    fs::write(
        &tree,
        TREE.replace("6mbit", "600kbit").replace("2mbit", "20kbit").replace("3mbit", "30kbit"),
    )
    .unwrap();
    let ctl = format!("{GATEWAY} ctl $run");
    let what = format!(
        "{ctl} set --rate 2mbit >&- || exit 11; {ctl} set --jitter 1ms >&- || exit 12
         {ctl} set --param target=3ms >&- || exit 15
         for set in '--aqm red' '--buffer 20p' '--rate 500kbit' '--shaper 1mbit' '--param queues=7'; do
             {ctl} set $set && exit 13; done
         {ctl} upgrade && exit 14
         {ctl} show; {ctl} save; kill -INT $run"
    );
    let output =
        while_running("packet", &format!("--aqm fq-codel --classes {}", tree.display()), &what);
    let (text, errors) = operator::well(&output);
    for told in [
        "no other queue while the link has classes",
        "tree.toml:4: class[0].rate = \"600kbit\": not allowed; allowed: at most 500kbit, which the link up has",
        "shaper beside classes",
        "no upgrade while it runs: with classes",
    ] {
        assert!(errors.contains(told), "{told} in {errors}");
    }
    let shown: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for queue in shown["queues"].as_array().unwrap() {
        assert_eq!(queue["tree"], serde_json::json!({"classes": 4, "default": "rest"}));
        assert_eq!((&queue["rate"], &queue["params"]["target"]), (&"2mbit".into(), &"3ms".into()));
        assert_eq!(queue["classes"]["borrowed"].as_object().unwrap().len(), 4);
    }
    assert!(
        text.contains("# The way up has a file for classes, which is not named here."),
        "{text}"
    );
    _ = fs::remove_file(&tree);
}

/// After SIGHUP classes have the rates that their file has by then; another tree takes a new start. A file that
/// promises more than there is gets a warning at the start. What was set meanwhile stays.
#[test]
fn other_rates_in_the_file_hold_after_sighup() {
    if !interfaces_allowed() {
        return;
    }
    let tree = scratch("tree.toml");
    fs::write(&tree, TREE.replace("6mbit", "600kbit").replace("mbit", "00kbit")).unwrap();
    let what = format!(
        "change() {{ sed -i \"$1\" {0}; kill -HUP $run; sleep 0.7; }}
         {GATEWAY} ctl $run set --delay 3ms >&-; change s/300kbit/100kbit/; {GATEWAY} ctl $run show >&2; change s/100kbit/400kbit/; change s/400kbit/100kbit/; change s/bela/bea/; {GATEWAY} ctl $run show >&-; kill -INT $run",
        tree.display()
    );
    let output = while_running("packet", &format!("--classes {}", tree.display()), &what);
    let (_, errors) = operator::well(&output);
    for told in [
        "the rates of the classes below line are 1mbit together, and its own is 600kbit",
        "SIGHUP: up has the classes of its file now, down has the classes of its file now",
        "tree.toml:12: class[2].name = \"bea\": not as before: no other queue while the link has classes",
        "\"bela\":100000",
        "the rates of the classes below line are 1100kbit together, and its own is 600kbit",
    ] {
        assert!(errors.contains(told), "{told} in {errors}");
    }
    assert!(errors.contains("\"delay\":\"3ms\""), "{errors}");
    _ = fs::remove_file(&tree);
}
