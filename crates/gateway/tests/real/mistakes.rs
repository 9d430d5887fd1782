//! Mistakes on the command line: each is refused in the user's words. A case is a line and what its message has to
//! contain.

use std::fs;

use super::{gateway, scratch};

const RUN: &str = "run --lan none1 --wan none2 --rate 1mbit";
const LAB: &str = "testbed --rate 1mbit";

#[test]
fn a_mistake_is_told_in_the_user_s_words() {
    for (line, told) in [
        (format!("{LAB} --mean-packet 0"), &["'0'", "allowed: a whole number, 40 … 65535"][..]),
        (format!("{LAB} --mean-packet x"), &["'x'", "allowed: a whole number, 40 … 65535"]),
        (format!("{LAB} --seed x"), &["'x'", "allowed: a whole number"]),
        (format!("{LAB} --seed=-1"), &["allowed: a whole number, 0 …"]),
        (format!("{LAB} --mpu 300"), &["'300'", "allowed: a whole number, 0 … 256"]),
        (format!("{LAB} --flows x"), &["'x'", "allowed: a whole number, 0 … 65535"]),
        (format!("{LAB} --flows 0"), &["--flows 0", "nothing to send", "--udp RATE"]),
        ("bulk 127.0.0.1 --flows 0".into(), &["'0'", "allowed: a whole number, 1 … 65535"]),
        ("bulk 127.0.0.1 --port http".into(), &["'http'", "allowed: a whole number"]),
        (
            "shell --rate 1mbit --mtu 100 true".into(),
            &["'100'", "allowed: a whole number, 1280 … 9000"],
        ),
        (format!("{RUN} --pcapng x --sample 0"), &["'0'", "allowed: a whole number, 1 …"]),
        (format!("{LAB} --limit 100p"), &["'--limit'", "hint: did you mean --buffer?"]),
        (format!("{LAB} --bandwidth 1mbit"), &["'--bandwidth'", "hint: did you mean --rate?"]),
        (format!("{LAB} --latency 5ms"), &["'--latency'", "hint: did you mean --delay?"]),
        (format!("{LAB} --qdisc red"), &["'--qdisc'", "hint: did you mean --aqm?"]),
        (format!("{LAB} --rtt 20ms"), &["'--rtt'", "hint: --delay is of each way"]),
        ("ctl x set --limit 100p".into(), &["hint: did you mean --buffer?"]),
        ("ctl x set --down-delay 5ms".into(), &["hint: --way down --delay"]),
        ("ctl x set --up-aqm red".into(), &["hint: --way up --aqm"]),
        (
            format!("{RUN} --up-rate 2mbit"),
            &["'--up-rate'", "hint: --rate is for both ways, --down-rate for the way down alone"],
        ),
        (
            format!("{LAB} --buffer 1bdp"),
            &["--buffer 1bdp", "the round trip is 0s", "--delay 10ms"],
        ),
        (
            format!("{LAB} --overhead -100"),
            &["allowed: words of tc cake", "a number from -64 to 256"],
        ),
        (format!("{RUN} --aqm tbf"), &["called tbf", "a link shapes by itself"]),
        (format!("{RUN} --aqm fq_codel"), &["called fq_codel", "did you mean `fq-codel`?"]),
        (format!("{RUN} --aqm own.py:Mine"), &["a class in Python", "`bluewater compare`"]),
        (format!("{RUN} --aqm codel --param limit=5"), &["no parameter limit", "its `buffer`"]),
        (
            format!("{RUN} --aqm fq-codel --param flows=5"),
            &["no parameter flows", "did you mean `queues`?"],
        ),
        (
            format!("{RUN} --aqm codel --param preset=lnux"),
            &["codel: preset", "did you mean `linux`?"],
        ),
        (
            format!("{LAB} --rate-trace none.csv"),
            &["--rate-trace none.csv: No such file or directory"],
        ),
        ("replay none.arr".into(), &["none.arr: No such file or directory"]),
    ] {
        let output = gateway(&line, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        for words in told {
            assert!(errors.contains(words), "{line}: {words}: {errors}");
        }
        for words in ["os error", "..=", "digit", "u32", "similar argument"] {
            assert!(!errors.contains(words), "{line}: {errors}");
        }
    }
}

/// Wrong keys in a file of classes, by what takes the place of a right line.
#[test]
fn a_mistake_in_classes_is_told_with_file_and_key() {
    const GOOD: &str = "default = \"b\"\n[[class]]\nname = \"a\"\nrate = \"1mbit\"\n[[class]]\n\
                        name = \"b\"\nparent = \"a\"\nrate = \"1mbit\"\naddress = [\"10.0.0.1\"]\n";
    for (right, wrong, told) in [
        ("default = \"b\"", "default = \"c\"", "default = \"c\": not allowed; allowed: a leaf: b"),
        ("default = \"b\"", "", "default: missing; allowed: the name of a leaf"),
        ("default", "defaultx", "defaultx = \"b\": unknown key; allowed: default, class"),
        ("parent = \"a\"", "parent = \"x\"", "class[1].parent = \"x\""),
        ("10.0.0.1", "10.0.0.1/8", "hint: 10.0.0.0/8 begins at its first address"),
        (
            "10.0.0.1",
            "10.0.0",
            "class[1].address[0] = \"10.0.0\": not allowed; allowed: an address or a prefix",
        ),
        ("address", "addresx", "hint: did you mean `address`?"),
        ("address = [\"10.0.0.1\"]", "peer = \"1\"", "class[1].peer = \"1\": only in a scenario"),
        ("address", "prio = 9\naddress", "class[1].prio = 9: not allowed; allowed: 0 … 7"),
        ("address", "quantum = \"2p\"\naddress", "class[1].quantum = \"2p\""),
        (
            "address",
            "aqm = \"red\"\nparams = { min_th = \"20p\", max_th = \"10p\" }\naddress",
            ":10: class[1].params.max_th = \"10p\": not allowed; allowed: min_th or more",
        ),
        ("address", "aqm = \"fq_codel\"\naddress", "hint: did you mean `fq-codel`?"),
        (
            "\"a\"\nrate = \"1mbit\"",
            "\"a\"\nrate = \"2mbit\"",
            ":4: class[0].rate = \"2mbit\": not allowed; allowed: at most 1mbit, which the link up has",
        ),
        ("\"a\"\nrate = \"1mbit\"", "\"a\"\nrate = \"1mbut\"", "class[0].rate = \"1mbut\""),
        (
            "\"a\"\nrate",
            "\"a\\nb\"\nrate",
            "class[0].name = \"a\\nb\": not allowed; allowed: letters",
        ),
    ] {
        let file = scratch("tree.toml");
        fs::write(&file, GOOD.replacen(right, wrong, 1)).unwrap();
        let output = gateway(&format!("{LAB} --classes {}", file.display()), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {errors}");
        assert!(errors.contains(told), "{told} in {errors}");
        assert!(errors.contains(file.to_str().unwrap()), "{errors}");
        _ = fs::remove_file(&file);
    }
    for (options, told) in [
        ("--classes none.toml", "--classes none.toml: No such file or directory"),
        ("--down-classes none.toml", "--down-classes none.toml: No such file or directory"),
    ] {
        let output = gateway(&format!("{LAB} {options}"), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(told), "{told} in {errors}");
    }
}

/// What is wrong only with several options together, too.
#[test]
fn a_mistake_in_the_options_of_a_file_is_told_with_it() {
    let file = scratch("options.toml");
    for (options, told) in [
        ("rate = \"900gbit\"", "beyond reach: a rate of 900gbit; allowed: at most 100gbit"),
        ("rate = \"1mbit\"\npolicer-burst = \"9kB\"", "--policer-burst 9kB: there is no policer"),
        (
            "rate = \"1mbit\"\naqm = \"red\"\n[param]\nmin_th = \"20p\"\nmax_th = \"10p\"",
            "red: max_th = 10p: allowed: min_th or more",
        ),
    ] {
        fs::write(&file, options).unwrap();
        let options = format!("run --lan absent --wan lo --config {}", file.display());
        let errors = gateway(&options, &[]).stderr;
        let errors = String::from_utf8_lossy(&errors);
        let told = format!("error: with {}: {told}", file.display());
        assert!(errors.starts_with(&told), "{told} in {errors}");
    }
    _ = fs::remove_file(&file);
}

#[test]
fn a_key_of_another_program_is_told_with_ours() {
    let file = scratch("mistake.toml");
    fs::write(&file, "lan = \"a\"\nwan = \"b\"\nbandwidth = \"1mbit\"\nlimit = \"5p\"\n").unwrap();
    let output = gateway(&format!("run --config {}", file.display()), &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    for words in ["did you mean rate?", "did you mean buffer?"] {
        assert!(errors.contains(words), "{errors}");
    }
    _ = fs::remove_file(&file);
}
