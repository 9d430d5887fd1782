//! Each reference table names the script that measures it.

use std::fs;
use std::path::Path;

#[test]
fn each_reference_table_has_its_script() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference");
    let page = fs::read_to_string(folder.join("README.md")).unwrap();
    let names = fs::read_dir(&folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let tables: Vec<String> = names.filter(|name| name.ends_with(".csv")).collect();
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{table}` | `")));
        let script = row.and_then(|row| row.split('`').nth(3)).unwrap_or_default();
        assert!(!script.is_empty(), "{table} is not in README.md");
        let others = row.is_some_and(|row| row.contains("of Debian's `ns2-examples`"));
        assert!(others || folder.join(script).is_file(), "{table}: there is no {script}");
    }
}
