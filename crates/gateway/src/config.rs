//! Options from a TOML file: a key is an option's name, a table of `param` the discipline's parameters.
//!
//! ```toml
//! lan = "eth1"
//! wan = "eth2"
//! rate = "50mbit"
//! aqm = "blue"
//! [param]
//! increment = 0.01
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgAction, Command};
use toml::{Table, Value};

use crate::text::text_of;
use crate::trouble::Trouble;

const OPTION: &str = "--config";

/// The arguments of a program with those of the file that `--config` names put before the others of
/// its subcommand `task`, so that the others override them. A queue discipline among the others leaves
/// out the file's parameters of its way.
///
/// # Errors
/// What is wrong in the file.
pub fn expand(
    mut args: Vec<OsString>,
    program: &Command,
    task: &str,
) -> Result<Vec<OsString>, Trouble> {
    let Some(command) =
        program.find_subcommand(task).filter(|_| args.get(1).is_some_and(|arg| arg == task))
    else {
        return Ok(args);
    };
    let Some(path) = named(&args) else { return Ok(args) };
    let mut table = read(&path)?;
    for (names, params) in [
        (&["aqm"][..], "param"),
        (&["up-aqm", "aqm-up"], "up-param"),
        (&["down-aqm", "aqm-down"], "down-param"),
    ] {
        if names.iter().any(|aqm| given(&args, aqm)) {
            table.remove(params);
        }
    }
    let from_file = arguments(&path, &table, command)?;
    args.splice(2..2, from_file);
    Ok(args)
}

/// The file that `--config` names.
fn named(args: &[OsString]) -> Option<PathBuf> {
    let position = args
        .iter()
        .position(|arg| arg.to_str().is_some_and(|arg| arg.split('=').next() == Some(OPTION)))?;
    match args[position].to_str()?.split_once('=') {
        Some((_, path)) => Some(path.into()),
        None => args.get(position + 1).map(PathBuf::from),
    }
}

/// Whether an option is among the arguments.
fn given(args: &[OsString], name: &str) -> bool {
    let names =
        |arg: &str| arg.strip_prefix("--").and_then(|arg| arg.split('=').next()) == Some(name);
    args.iter().filter_map(|arg| arg.to_str()).any(names)
}

fn read(path: &Path) -> Result<Table, Trouble> {
    let text = text_of(path).map_err(|e| Trouble::system(path.display(), e))?;
    toml::from_str(&text)
        .map_err(|e| Trouble::new(format!("{}: {}", path.display(), e.to_string().trim_end()), ""))
}

/// What a file says, as arguments of `command`.
fn arguments(path: &Path, table: &Table, command: &Command) -> Result<Vec<OsString>, Trouble> {
    let file = path.display();
    let known =
        || command.get_arguments().filter(|arg| arg.get_long().is_some_and(|l| l != "config"));
    let mut arguments: Vec<OsString> = Vec::new();
    for (key, value) in table {
        let Some(option) = known().find(|arg| arg.get_long() == Some(key)) else {
            let names: Vec<_> = known().filter_map(|arg| arg.get_long()).collect();
            let hint = format!("allowed: {}", names.join(", "));
            return Err(Trouble::new(format!("{file}: {key} is no option"), hint));
        };
        let wrong =
            |wanted: &str| Trouble::new(format!("{file}: {key} = {value}: {wanted} is wanted"), "");
        match (option.get_action(), value) {
            (ArgAction::SetTrue, Value::Boolean(true)) => arguments.push(format!("--{key}").into()),
            (ArgAction::SetTrue, Value::Boolean(false)) => {}
            (ArgAction::SetTrue, _) => return Err(wrong("true or false")),
            (ArgAction::Append, Value::Table(params)) => {
                for (name, value) in params {
                    let value = scalar(value)
                        .ok_or_else(|| wrong("a text, a number, true or false for each name"))?;
                    arguments.push(format!("--{key}={name}={value}").into());
                }
            }
            (ArgAction::Append, _) => return Err(wrong("a table of names and values")),
            (_, Value::Boolean(_)) => return Err(wrong("a text or a number")),
            (_, value) => {
                let value = scalar(value).ok_or_else(|| wrong("a text or a number"))?;
                arguments.push(format!("--{key}={value}").into());
            }
        }
    }
    // Values are looked at here, where it is known that the file has them.
    let alone = [command.get_name().into()].into_iter().chain(arguments.iter().cloned());
    match command.clone().try_get_matches_from(alone) {
        Err(e) if e.kind() != ErrorKind::MissingRequiredArgument => {
            let text = e.to_string();
            let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Err(Trouble::new(format!("{file}: {what}"), ""))
        }
        _ => Ok(arguments),
    }
}

/// A value as it stands on a command line.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Args as _};

    use super::*;
    use crate::options::LinkOptions;

    fn program() -> Command {
        let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue);
        let config = Arg::new("config").long("config");
        let run = Command::new("run").args_override_self(true).arg(quiet).arg(config);
        Command::new("gateway").subcommand(LinkOptions::augment_args(run))
    }

    /// The arguments that come of a file and others.
    fn expanded(text: &str, others: &[&str]) -> Result<Vec<String>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let args = ["gateway", "run", "--config", &path].into_iter().chain(others.iter().copied());
        let args = expand(args.map(OsString::from).collect(), &program(), "run");
        let args = args.map_err(|e| e.to_string().replace(&path, "FILE"))?;
        assert_eq!(args[0], "gateway");
        program().try_get_matches_from(&args).map_err(|e| e.to_string())?;
        let args = args.into_iter().map(|arg| arg.into_string().unwrap());
        Ok(args.skip(2).filter(|arg| *arg != path && arg != "--config").collect())
    }

    #[test]
    fn keys_are_options_and_tables_parameters() {
        let text = "rate = '50mbit'\naqm = 'blue'\nmean-packet = 500\nquiet = true\n[param]\nincrement = 0.01\nidle = 'periodic'";
        let expected = [
            "--aqm=blue",
            "--mean-packet=500",
            "--param=idle=periodic",
            "--param=increment=0.01",
            "--quiet",
            "--rate=50mbit",
        ];
        let mut found = expanded(text, &[]).unwrap();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn options_given_beside_the_file_override_it() {
        let text = "rate = '50mbit'\naqm = 'blue'\n[param]\nincrement = 0.01";
        let found = expanded(text, &["--rate=1mbit", "--aqm=red"]).unwrap();
        assert_eq!(found, ["--aqm=blue", "--rate=50mbit", "--rate=1mbit", "--aqm=red"]);
        let args = ["gateway", "run"].into_iter().chain(found.iter().map(String::as_str));
        let matches = program().try_get_matches_from(args).unwrap();
        let run = matches.subcommand_matches("run").unwrap();
        assert_eq!(run.get_one::<String>("aqm").unwrap(), "red");
    }

    #[test]
    fn what_is_wrong_is_named_with_file_key_and_value() {
        for (text, expected) in [
            ("rate = ", "FILE: TOML parse error at line 1"),
            ("rat = '1mbit'", "FILE: rat is no option\nhint: allowed: quiet, rate, down-rate"),
            ("rate = '1mbut'", "FILE: invalid value '1mbut' for '--rate <RATE>': allowed: "),
            ("rate = true", "FILE: rate = true: a text or a number is wanted"),
            ("quiet = 1", "FILE: quiet = 1: true or false is wanted"),
            ("param = 'x=1'", "FILE: param = \"x=1\": a table of names and values is wanted"),
            ("config = 'other.toml'", "FILE: config is no option"),
        ] {
            let found = expanded(text, &[]).unwrap_err();
            assert!(found.starts_with(&format!("error: {expected}")), "{text}: {found}");
        }
        let absent = ["gateway", "run", "--config=/absent.toml"].map(OsString::from).to_vec();
        let trouble = expand(absent, &program(), "run").unwrap_err();
        assert!(trouble.what.starts_with("/absent.toml: "), "{trouble}");
    }

    #[test]
    fn other_commands_are_left_alone() {
        let args = ["gateway", "shell", "--", "x", "--config", "y"].map(OsString::from).to_vec();
        assert_eq!(expand(args.clone(), &program(), "run"), Ok(args));
    }
}
