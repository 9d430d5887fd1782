//! The header declares what the library has.

use std::fs;

use crate::root;

/// A type of Rust as C writes it, with the name behind it.
fn declared(kind: &str, name: &str) -> String {
    let plain = |kind: &str| {
        Some(match kind {
            "u8" => "uint8_t",
            "u16" => "uint16_t",
            "u32" => "uint32_t",
            "u64" => "uint64_t",
            "usize" => "size_t",
            "c_int" => "int",
            "c_char" => "char",
            "c_void" => "void",
            "Queue" => "aqm_queue",
            "Packet" => "aqm_packet",
            "Stats" => "aqm_stats",
            _ => return None,
        })
    };
    let known = |kind: &str| plain(kind).unwrap_or_else(|| panic!("a type for C: {kind}"));
    if let Some(to) = kind.strip_prefix("*const ") {
        format!("const {} *{name}", known(to))
    } else if let Some(to) = kind.strip_prefix("*mut ") {
        format!("{} *{name}", known(to))
    } else if kind == "[u64; COUNTS]" {
        format!("uint64_t {name}[5]")
    } else {
        format!("{} {name}", known(kind))
    }
}

/// `name: type` between commas.
fn fields(list: &str) -> Vec<String> {
    let fields = list.split(',').map(str::trim).filter(|field| !field.is_empty());
    fields
        .map(|field| {
            let (name, kind) = field.trim_start_matches("pub ").split_once(':').expect("a field");
            declared(kind.trim(), name)
        })
        .collect()
}

/// Without comments, each run of white space a space.
fn squeezed(text: &str) -> String {
    let mut plain = String::new();
    for (i, part) in text.split("/*").enumerate() {
        plain += if i == 0 { part } else { part.split_once("*/").expect("the comment's end").1 };
    }
    let plain: Vec<_> = plain.split_whitespace().collect();
    plain.join(" ")
}

fn source(file: &str) -> String {
    let text = fs::read_to_string(root().join(file)).expect("a file");
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn the_header_declares_every_function_with_its_types() {
    let (text, header) = (source("src/ffi.rs"), squeezed(&raw("include/bluewater_aqm.h")));
    let mut count = 0;
    for function in text.split("extern \"C\" fn ").skip(1) {
        let (name, rest) = function.split_once('(').expect("its arguments");
        let (list, rest) = rest.split_once(')').expect("their end");
        let returned = rest.split_once('{').expect("its body").0.trim();
        let list = match fields(list).join(", ") {
            none if none.is_empty() => "void".into(),
            list => list,
        };
        let returned =
            returned.strip_prefix("->").map_or("void ".into(), |kind| declared(kind.trim(), ""));
        let wanted = format!("{returned}{name}({list});");
        assert!(header.contains(&wanted), "the header lacks {wanted}");
        count += 1;
    }
    assert_eq!(header.matches(");").count(), count, "functions that the library lacks");
    assert_eq!(count, 12);
}

#[test]
fn the_header_declares_every_structure_with_its_fields() {
    let (text, header) = (source("src/queue.rs"), squeezed(&raw("include/bluewater_aqm.h")));
    for structure in text.split("#[repr(C)]\npub struct ").skip(1) {
        let (name, rest) = structure.split_once(" {").expect("its fields");
        let list = fields(rest.split_once('}').expect("their end").0).join("; ");
        let name = declared(name, "");
        let wanted = format!("typedef struct {name}{{ {list}; }} {};", name.trim());
        assert!(header.contains(&wanted), "the header lacks {wanted}");
    }
    assert_eq!(text.matches("#[repr(C)]").count() + 1, header.matches("typedef struct").count());
}

#[test]
fn the_header_has_every_number() {
    use bluewater_aqm::ffi::{ADMITTED, DROPPED, EARLY, ERROR, MARKED, OVERFLOW, PENALTY, POLICED};
    let numbers = [
        ("ERROR", ERROR),
        ("ADMITTED", ADMITTED),
        ("MARKED", MARKED),
        ("DROPPED", DROPPED),
        ("OVERFLOW", OVERFLOW),
        ("EARLY", EARLY),
        ("PENALTY", PENALTY),
        ("POLICED", POLICED),
    ];
    let header = squeezed(&raw("include/bluewater_aqm.h"));
    for (name, number) in numbers {
        let wanted = [",", " }"].map(|end| format!("AQM_{name} = {number}{end}"));
        assert!(wanted.iter().any(|each| header.contains(each)), "the header lacks {}", wanted[0]);
    }
    assert_eq!(
        header.matches("AQM_").count(),
        numbers.len() + 2 /* its guard is BLUEWATER_AQM_H */
    );
    let constants = source("src/ffi.rs").matches("\npub const ").count();
    assert_eq!(constants, numbers.len());
}

fn raw(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect("a file")
}
