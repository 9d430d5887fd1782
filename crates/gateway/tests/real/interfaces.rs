//! Between two interfaces.

use super::*;

/// With all that can be asked for: TCP over IPv4 and IPv6, marks, the recording and its replay.
#[test]
fn frames_go_between_two_interfaces() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let file = scratch("run.arr");
        let options = format!("--buffer 30kB --aqm red --record {}", file.display());
        let (lines, [up, down]) = between_interfaces("bridge.sh", plane, &options);
        assert_eq!(lines[0]["queues"][0]["aqm"], "red");
        let number = |key: &str| up[key].as_f64().unwrap();
        // 4 s of sending in a bit more than 4 s; the gateway stops soon after.
        assert!(number("departures_bytes") * 8.0 > 4.0 * 8e6 / 3.0, "{up}");
        assert!(number("departures_bytes") * 8.0 <= 8e6 * number("measured_s") + 8.0 * 1514.0);
        assert!(number("marks") > 0.0, "ECN was asked for: {up}");
        for way in [&up, &down] {
            assert_eq!((&way["refused"], &way["lost_before"]), (&0.into(), &0.into()), "{way}");
            assert_eq!(way["conserved"], true);
        }
        let output = gateway(&format!("replay {}", file.display()), &[]);
        _ = fs::remove_file(&file);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("the same decisions"), "{told}");
        for way in [&up, &down] {
            assert!(told.contains(way["decision_hash"].as_str().unwrap()), "{told}");
        }
    }
}

/// A veth's other end may be anybody's: nobody who does not insist gets AF_XDP there, and it is said.
#[test]
fn a_plane_that_would_spoil_packets_is_not_taken_unasked() {
    if !interfaces_allowed() {
        return;
    }
    let output = while_running("packet", "", "head -n 1 $log; kill -INT $run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.starts_with("plane: packet, not xdp: lan is a veth"), "{errors}");
    let head: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(head["plane"], "packet");
    assert!(head["fallback"].as_str().unwrap().contains("--plane xdp"), "{head}");
}

/// A gateway that is stopped while 6000 datagrams come: what the kernel had no room for is counted,
/// and all the others arrive. AF_XDP has room for 4096.
#[test]
fn what_comes_while_it_cannot_read_is_counted() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let (_, [up, _]) = between_interfaces("stall.sh", plane, "--buffer 20000p");
        let count = |key: &str| up[key].as_u64().unwrap();
        let all = count("arrivals") + count("lost_before");
        // With what hosts say of themselves.
        assert!((6001..6050).contains(&all), "{plane}: {up}");
        assert!(plane != "xdp" || (1904..1950).contains(&count("lost_before")), "{up}");
        assert_eq!((&up["conserved"], count("drops")), (&true.into(), 0));
    }
}

/// Once frames go between interfaces no thread of the gateway has any rights.
#[test]
fn rights_over_interfaces_are_given_up() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let what = "cat /proc/$run/task/*/status; kill -INT $run";
        let output = while_running(plane, &format!("--plane {plane}"), what);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        for (key, value) in [
            ("CapPrm", 0),
            ("CapEff", 0),
            ("CapInh", 0),
            ("CapBnd", 0),
            ("NoNewPrivs", 1),
            ("Seccomp", 2),
        ] {
            let mut values =
                text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
            let all = values.all(|v| u64::from_str_radix(v, 16) == Ok(value));
            assert!(all && text.contains(key), "{plane}: {text}");
        }
        if plane == "xdp" {
            // Root of the machine becomes a user that nobody else is.
            let user = text.lines().find_map(|line| line.strip_prefix("Uid:\t")).unwrap();
            let user: u32 = user.split('\t').next().unwrap().parse().unwrap();
            assert!((61_184..=65_519).contains(&user), "{text}");
        }
    }
}

/// Both interfaces go down and come back, one after the other, while TCP sends: what could not be
/// sent meanwhile is counted, and then packets flow as before.
#[test]
fn an_interface_may_go_down_and_come_back() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let (_, [up, down]) = between_interfaces("flap.sh", plane, "--buffer 30kB");
        assert_eq!((&up["conserved"], &down["conserved"]), (&true.into(), &true.into()));
        assert!(up["refused"].as_u64().unwrap() > 0, "{plane}: {up}");
        assert!(up["departures"].as_u64().unwrap() > 500, "{plane}: {up}");
    }
}

#[test]
fn an_interface_that_is_removed_ends_the_gateway() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let output = while_running(plane, &format!("--plane {plane}"), "ip link del lan");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{plane}: {errors}");
        assert!(errors.contains("an interface is gone"), "{plane}: {errors}");
    }
}

/// Another one with the number and the name of the one that was removed is another one.
#[test]
fn an_interface_that_is_replaced_ends_the_gateway() {
    if !interfaces_allowed() {
        return;
    }
    for plane in planes() {
        let replace = "number=$(ip -o link show lan | cut -d: -f1)
            printf 'link del lan\nlink add lan index %s type veth peer name x\n' $number | ip -batch -
            sleep 2; kill -INT $run 2>&-";
        let output = while_running(plane, &format!("--plane {plane}"), replace);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{plane}: {errors}");
        assert!(errors.contains("an interface is gone"), "{plane}: {errors}");
    }
}

#[test]
fn an_interface_that_cannot_be_used_is_named() {
    for (options, words) in
        [("--lan no-such-if --wan lo", "ip -br link"), ("--lan lo --wan lo", "same interface")]
    {
        let output = gateway(&format!("run --rate 1mbit {options}"), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
}

/// TCP with all offloads on, between hosts with long packets.
#[test]
fn long_packets_go_through_or_are_refused_at_the_start() {
    if !interfaces_allowed() {
        return;
    }
    let run = |plane: &str, mtu: u32| {
        let log = scratch("log");
        let rights = if plane == "xdp" { "-n" } else { "-rn" };
        let mut unshare = Command::new("unshare");
        unshare.args([rights, "sh", "bridge.sh", GATEWAY, log.to_str().unwrap()]);
        unshare.args(["--rate", "80mbit", "--delay", "1ms", "--buffer", "400p", "--plane", plane]);
        unshare.env("MTU", mtu.to_string());
        unshare.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
        (unshare.output().unwrap(), log)
    };
    let cases = planes().into_iter().flat_map(|plane| {
        let mtus: &[u32] = match plane {
            "xdp" => &[3490, 3600, 9000, 20_000],
            _ => &[3600, 9000, 20_000, 65_505],
        };
        mtus.iter().map(move |&mtu| (plane, mtu))
    });
    at_once(cases, |(plane, mtu)| {
        let (output, log) = run(plane, mtu);
        let errors = String::from_utf8_lossy(&output.stderr);
        let through = plane != "xdp" || mtu < 3600;
        assert_eq!(output.status.success(), through, "{plane} {mtu}: {errors}");
        if through {
            let (_, [up, _]) = read(&log);
            // 4 s of sending; on a busy machine a third of the rate shows that it works.
            let sent = up["departures_bytes"].as_f64().unwrap() * 8.0;
            assert!(sent > 4.0 * 8e7 / 3.0, "{mtu}: {up}");
            assert_eq!(up["refused"], 0, "{plane} {mtu}: {up}");
        } else {
            let words = ["AF_XDP", "ip link set lan mtu 1500, or --plane packet"];
            assert!(words.iter().all(|word| errors.contains(word)), "{plane} {mtu}: {errors}");
        }
    });
}

/// What a neighbour of a port tries with this machine's own stack: to reach it by its link-local address, to
/// find addresses of other interfaces by ARP, to give it an address by a router advertisement, and to have
/// it route into a network beside the link. Nothing comes of it while frames go through, and all of it
/// did before and may again once the gateway is gone, also after SIGKILL; or where that is asked for.
#[test]
fn the_host_behind_the_ports_is_out_of_reach() {
    if !interfaces_allowed() {
        return;
    }
    let mut cases = Vec::new();
    for plane in planes() {
        for (options, expected) in [("", "shut"), ("--open-host", "open")] {
            // Root of the machine may load programs, others have nftables.
            for rights in ["-n", "-rn"] {
                let may = if rights == "-n" { operator::is_root() } else { plane != "xdp" };
                if may && (plane != "xdp" || options.is_empty()) {
                    cases.push(format!(
                        "{rights} sh exposed.sh {GATEWAY} {expected} --plane {plane} {options}"
                    ));
                }
            }
        }
    }
    at_once(cases, |arguments| {
        let output = Command::new("unshare")
            .args(arguments.split_whitespace())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments}: {text}{errors}");
    });
}

/// A rule of nftables is for an interface by name; one that is renamed is closed under its new name.
#[test]
fn a_renamed_port_is_closed_under_its_new_name() {
    if !interfaces_allowed() {
        return;
    }
    // Root of a user namespace has nftables alone.
    let said = scratch("said");
    let output = Command::new("unshare")
        .args(["-rn", "sh", "exposed.sh", GATEWAY, "shut", "--plane", "packet"])
        .env("RENAME", &said)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
        .output()
        .unwrap();
    _ = fs::remove_file(&said);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        return skipped(&format!("an interface that is up cannot be renamed: {errors}"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{errors}");
    assert!(errors.contains("warning: lan is called elsewhere now"), "{errors}");
}

/// Without the right to do it, or a kernel that has it, nothing starts but where that is asked for.
#[test]
fn a_port_that_cannot_be_shut_is_refused() {
    if !interfaces_allowed() {
        return;
    }
    for (options, code) in [("", 2), ("--open-host", 0)] {
        // Packet sockets need cap_net_raw alone.
        let script = format!(
            "ip link add lan type veth peer name x; ip link add wan type veth peer name y
             for i in lan wan x y; do ip link set $i up; done
             setpriv --bounding-set=-all,+net_raw --inh-caps=-all,+net_raw --ambient-caps=-all,+net_raw \
             timeout --preserve-status -s INT 1 {GATEWAY} run --rate 1mbit --lan lan --wan wan --quiet \
             --plane packet {options}"
        );
        let output = in_namespace("packet", &["-c", &script]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{options}: {errors}");
        let words = ["own stack cannot be kept", "cap_net_admin", "--open-host"];
        assert!(words.iter().all(|word| errors.contains(word) == (code == 2)), "{errors}");
    }
}
