//! What makes stored results old, and what does not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fingerprint::{GATEWAY, Makers, SIMULATOR, of};

const ONE: Makers =
    Makers { crates: &["one"], libraries: &["libm"], beneath: &["rand"], uncounted: &[] };

const LIB: &str = r#"
//! A crate.
mod below;
pub fn double(x: u64) -> u64 { x + x }
#[cfg(test)]
mod tests;
"#;
const BELOW: &str = "pub(crate) const HALF: f64 = 0.5;\n";
const LOCK: &str = "[[package]]\nname = \"libm\"\nversion = \"0.2.1\"\n\n\
                    [[package]]\nname = \"rand\"\nversion = \"0.9.1\"\n\n\
                    [[package]]\nname = \"serde\"\nversion = \"1.0.1\"\n";

/// A workspace of one crate; the hash after these files were put in place of its own.
fn hash(changes: &[(&str, &str)]) -> u64 {
    let root = tempfile::tempdir().unwrap();
    let files = [
        ("Cargo.lock", LOCK),
        ("crates/one/src/lib.rs", LIB),
        ("crates/one/src/below.rs", BELOW),
        ("crates/one/src/tests.rs", "#[test] fn holds() {}"),
    ];
    for (name, text) in files.iter().chain(changes) {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    of(&ONE, root.path()).unwrap().hash
}

fn hash_with_lib(text: &str) -> u64 {
    hash(&[("crates/one/src/lib.rs", text)])
}

#[test]
fn what_the_compiler_does_not_see_changes_nothing() {
    for text in [
        LIB.replace("A crate", "Another sentence"),
        LIB.replace("pub fn", "/// Twice as much.\n// why\npub fn"),
        LIB.replace("pub fn", "#[doc = \"Twice.\"]\npub fn"),
        LIB.replace("{ x + x }", "{\n    /* by adding */ x + x\n}"),
        format!(
            "{LIB}#[cfg(test)]\nuse std::fmt;\n#[cfg(test)]\n#[expect(dead_code)]\nfn one() {{}}"
        ),
    ] {
        assert_eq!(hash_with_lib(&text), hash(&[]), "{text}");
    }
    assert_eq!(hash(&[("crates/one/src/tests.rs", "fn other() {}")]), hash(&[]));
    assert_eq!(hash(&[("Cargo.lock", &LOCK.replace("1.0.1", "1.0.2"))]), hash(&[]));
}

#[test]
fn what_the_compiler_sees_changes_it() {
    let mut seen = BTreeSet::from([hash(&[])]);
    for text in [
        LIB.replace("x + x", "x * x"),
        LIB.replace("x + x", "x + x + 0"),
        LIB.replace("double", "twice"),
        LIB.replace("#[cfg(test)]\nmod tests;", ""),
        LIB.replace("#[cfg(test)]", "#[cfg(not(test))]"),
        LIB.replace("#[cfg(test)]", "#[inline]"),
    ] {
        // Without the tests' module, the same is compiled.
        let new = seen.insert(hash_with_lib(&text));
        assert_eq!(new, text.contains("mod tests"), "{text}");
    }
    assert!(seen.insert(hash(&[("crates/one/src/below.rs", "pub(crate) const HALF: f64 = 0.6;")])));
    for [old, new] in [["0.2.1", "0.2.2"], ["0.9.1", "0.9.2"]] {
        assert!(seen.insert(hash(&[("Cargo.lock", &LOCK.replace(old, new))])));
    }
    // A registry's library, and one of the same version that is patched.
    let registry = "\"0.2.1\"\nsource = \"registry\"\nchecksum = \"00ff\"";
    assert!(seen.insert(hash(&[("Cargo.lock", &LOCK.replace("\"0.2.1\"", registry))])));
}

/// Two modules may be of one file.
#[test]
fn a_file_that_a_path_names_counts() {
    let text = format!("{LIB}#[path = \"shared.rs\"]\nmod again;");
    let with = |shared| {
        hash(&[("crates/one/src/lib.rs", &text[..]), ("crates/one/src/shared.rs", shared)])
    };
    assert_ne!(with("const A: u8 = 1;"), with("const A: u8 = 2;"));
}

#[test]
fn what_is_said_to_people_changes_nothing() {
    let with = |text: &str| hash_with_lib(&format!("{LIB}{text}"));
    for (one, other) in [
        (r#"fn f() { refuse("k", "at least 1") }"#, r#"fn f() { refuse("k", "more than 0") }"#),
        (r#"fn f() { panic!("no victim at {x}") }"#, r#"fn f() { panic!("there is none") }"#),
        ("fn f() { bad(\"a very \\\n    long one\") }", "fn f() { bad(\"a long one\") }"),
        (
            r#"t! { Red = "red", "Drops early packets." }"#,
            r#"t! { Red = "red", "Marks by their length." }"#,
        ),
    ] {
        assert_eq!(with(one), with(other), "{one}");
    }
    let gateway = Makers { crates: &["gateway"], libraries: &[], beneath: &[], uncounted: &[] };
    let of_gateway = |text: &str| {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("crates/gateway/src")).unwrap();
        fs::write(root.path().join("crates/gateway/src/lib.rs"), text).unwrap();
        fs::write(root.path().join("Cargo.lock"), LOCK).unwrap();
        of(&gateway, root.path()).unwrap().hash
    };
    let [add, delete] =
        ["add", "delete"].map(|verb| format!("fn f() {{ nft(\"{verb} table ip\") }}"));
    assert_ne!(of_gateway(&add), of_gateway(&delete), "a command");
}

#[test]
fn what_may_be_a_name_or_is_compared_changes_it() {
    let with = |text: &str| hash_with_lib(&format!("{LIB}fn f() {{ {text} }}"));
    for (one, other) in [
        (r#"push("drops")"#, r#"push("marks")"#),
        (r#"format!("{x} {y}")"#, r#"format!("{y} {x}")"#),
        (r#"match x { "drop tail" => 1, _ => 0 }"#, r#"match x { "drop head" => 1, _ => 0 }"#),
        (r#"x == "drop tail""#, r#"x == "drop head""#),
        ("read(\"all of\\nit\")", "read(\"all by\\nit\")"),
        (r##"read(r#"one word"#)"##, r##"read(r#"two word"#)"##),
        (r#"push("one word")"#, r#"push("one", "word")"#),
    ] {
        assert_ne!(with(one), with(other), "{one}");
    }
}

#[test]
fn a_field_for_tests_hides_no_other() {
    let one = "struct S { #[cfg(test)] pub a: u8, pub b: u8 }";
    assert_ne!(hash_with_lib(one), hash_with_lib(&one.replace("b: u8", "b: u16")));
}

#[test]
fn what_is_missing_is_said() {
    let refused = |makers: &Makers, text: &str| {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("crates/one/src")).unwrap();
        fs::write(root.path().join("crates/one/src/lib.rs"), text).unwrap();
        fs::write(root.path().join("Cargo.lock"), LOCK).unwrap();
        of(makers, root.path()).err().unwrap().to_string()
    };
    assert!(refused(&ONE, "mod gone;").contains("no file of the module gone"));
    assert!(refused(&ONE, "fn (").contains("not Rust"));
    let other = Makers { libraries: &["rand_pcg"], ..ONE };
    assert!(refused(&other, "").contains("no version of rand_pcg"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a crate needs when it is not tested.
fn needs(name: &str) -> Vec<String> {
    let path = root().join("crates").join(name).join("Cargo.toml");
    let table: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let mut found = Vec::new();
    let linux = table.get("target").and_then(|t| t.get("cfg(target_os = \"linux\")"));
    for part in [Some(&toml::Value::Table(table.clone())), linux].into_iter().flatten() {
        if let Some(toml::Value::Table(list)) = part.get("dependencies") {
            found.extend(list.keys().cloned());
        }
    }
    found
}

/// A new crate or library has to be put into one of the lists before anything is made with it.
#[test]
fn every_dependency_counts_or_is_said_not_to() {
    for makers in [&SIMULATOR, &GATEWAY] {
        let said: BTreeSet<&str> =
            makers.libraries.iter().copied().chain(makers.uncounted.iter().map(|l| l.0)).collect();
        let mut needed = BTreeSet::new();
        for name in makers.crates {
            for need in needs(name) {
                match need.strip_prefix("bluewater-") {
                    Some(own) => assert!(makers.crates.contains(&own), "{name} needs {need}"),
                    None => drop(needed.insert(need)),
                }
            }
        }
        let needed: BTreeSet<&str> = needed.iter().map(String::as_str).collect();
        assert_eq!(needed, said, "a dependency belongs into one of the lists of src/lib.rs");
    }
}

/// Every file of the crates is looked at, but for tests and programs of their own.
#[test]
fn no_source_is_left_out() {
    for makers in [&SIMULATOR, &GATEWAY] {
        let looked_at = of(makers, &root()).unwrap().files;
        for name in makers.crates {
            let files = sources(root().join("crates").join(name).join("src"));
            // The gateway's live page tells of results and makes none.
            let (files, others): (Vec<_>, Vec<_>) =
                files.into_iter().partition(|file| file.extension().is_some_and(|e| e == "rs"));
            let shown = |file: &PathBuf| file.parent().unwrap().ends_with("control/page");
            assert!(others.iter().all(shown), "{others:?}");
            let whole: String =
                files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
            for file in files.iter().filter(|file| !looked_at.contains(file)) {
                // The module's own file, or one in its folder.
                let names = [file.file_stem(), file.parent().and_then(Path::file_name)];
                let tests = names.iter().flatten().any(|name| {
                    ["", "pub(crate) "].iter().any(|seen| {
                        whole.contains(&format!("#[cfg(test)]\n{seen}mod {};", name.display()))
                    })
                });
                let program = file.parent().unwrap().ends_with("bin");
                assert!(tests || program, "{} is in no module", file.display());
            }
        }
    }
}

fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let mut waiting = vec![folder];
    let mut found = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push(path);
        }
    }
    found
}
