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
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use scenario::error::did_you_mean;
use scenario::meant;
use toml::de::{DeTable, Error};
use toml::{Table, Value};

use crate::text::text_of;
use crate::trouble::Trouble;

const OPTION: &str = "--config";

/// A hint for an option of one way that the subcommand `task` does not have so.
pub fn of_one_way(option: &str, task: &str) -> Option<String> {
    let (way, ours) = option.strip_prefix("--")?.split_once('-')?;
    match (way, task) {
        ("down" | "up", "ctl") => Some(format!("--way {way} --{ours} is for that way alone")),
        ("up", _) => {
            Some(format!("--{ours} is for both ways, --down-{ours} for the way down alone"))
        }
        _ => None,
    }
}

/// A hint for an option that other programs call otherwise, with or without its dashes.
pub fn called_otherwise(option: &str) -> Option<String> {
    let (dashes, word) = match option.strip_prefix("--") {
        Some(word) => ("--", word),
        None => ("", option),
    };
    if let "rtt" | "base-rtt" = word {
        return Some(format!("{dashes}delay is of each way: half of the round trip"));
    }
    let ours = meant::called(&word.replace('-', "_"))
        .find(|ours| ["rate", "delay", "buffer", "aqm"].contains(ours))?;
    Some(format!("did you mean {dashes}{ours}?"))
}

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
    once(command, &args[1..])?;
    let Some(path) = named(&args) else { return Ok(args) };
    let mut file = Config::read(path)?;
    for (names, params) in [
        (&["aqm"][..], "param"),
        (&["up-aqm", "aqm-up"], "up-param"),
        (&["down-aqm", "aqm-down"], "down-param"),
    ] {
        if names.iter().any(|aqm| given(&args, aqm)) {
            file.table.remove(params);
        }
    }
    args.splice(2..2, file.arguments(command)?);
    Ok(args)
}

/// The interfaces that a file names, LAN and WAN.
///
/// # Errors
/// What is wrong in the file.
pub fn ports(path: PathBuf) -> Result<[String; 2], Trouble> {
    let file = Config::read(path)?;
    let port = |key: &str| match file.table.get(key) {
        Some(Value::String(name)) => Ok(name.clone()),
        _ => {
            Err(file.wrong(file.line_of(key, None), key, "the name of an interface is wanted", ""))
        }
    };
    Ok([port("lan")?, port("wan")?])
}

/// Refuses an option that is given twice: only those of a file are overridden.
fn once(command: &Command, args: &[OsString]) -> Result<(), Trouble> {
    match command.clone().args_override_self(false).try_get_matches_from(args) {
        Err(e) if e.kind() == ErrorKind::ArgumentConflict => {
            let text = e.to_string();
            let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Err(Trouble::new(what, ""))
        }
        _ => Ok(()),
    }
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

/// A file of options.
struct Config {
    path: PathBuf,
    text: String,
    table: Table,
}

impl Config {
    fn read(path: PathBuf) -> Result<Self, Trouble> {
        let text = text_of(&path).map_err(|e| Trouble::system(path.display(), e))?;
        let mut file = Self { path, text, table: Table::new() };
        file.table = toml::from_str(&file.text).map_err(|e: Error| {
            let at = e.span().map_or(0, |span| span.start);
            file.wrong(file.line(at), "", e.message(), "")
        })?;
        Ok(file)
    }

    /// What it says, as arguments of `command`.
    ///
    /// # Errors
    /// All that is wrong in it.
    fn arguments(&self, command: &Command) -> Result<Vec<OsString>, Trouble> {
        let known =
            || command.get_arguments().filter(|arg| arg.get_long().is_some_and(|l| l != "config"));
        let (mut arguments, mut wrong) = (Vec::new(), Vec::new());
        for (key, value) in &self.table {
            let made = match known().find(|arg| arg.get_long() == Some(key)) {
                Some(option) => self.of_option(key, value, option).and_then(|made| {
                    self.allowed(key, value, &made, command)?;
                    Ok(made)
                }),
                None => {
                    let names: Vec<_> = known().filter_map(|arg| arg.get_long()).collect();
                    let near = || did_you_mean(key, names.iter().copied());
                    let meant = called_otherwise(key).unwrap_or_else(near);
                    let allowed = format!("allowed: {}", names.join(", "));
                    let hint = if meant.is_empty() { allowed } else { meant };
                    Err(self.wrong(self.line_of(key, None), key, "no such option", &hint))
                }
            };
            match made {
                Ok(made) => arguments.extend(made),
                Err(trouble) => wrong.push(trouble),
            }
        }
        Trouble::all(wrong).map_or(Ok(arguments), Err)
    }

    /// The arguments that a value of an option stands for.
    fn of_option(&self, key: &str, value: &Value, option: &Arg) -> Result<Vec<OsString>, Trouble> {
        let wrong = |wanted: &str| {
            let said = format!("{key} = {value}");
            Err(self.wrong(self.line_of(key, None), &said, &format!("{wanted} is wanted"), ""))
        };
        match (option.get_action(), value) {
            (ArgAction::SetTrue, Value::Boolean(true)) => Ok(vec![format!("--{key}").into()]),
            (ArgAction::SetTrue, Value::Boolean(false)) => Ok(Vec::new()),
            (ArgAction::SetTrue, _) => wrong("true or false"),
            (ArgAction::Append, Value::Table(params)) => params
                .iter()
                .map(|(name, value)| match scalar(value) {
                    Some(text) => Ok(format!("--{key}={name}={text}").into()),
                    None => {
                        let said = format!("{key}.{name} = {value}");
                        let wanted = "a text, a number, true or false is wanted";
                        Err(self.wrong(self.line_of(key, Some(name)), &said, wanted, ""))
                    }
                })
                .collect(),
            (ArgAction::Append, _) => wrong("a table of names and values"),
            (_, Value::Boolean(_)) => wrong("a text or a number"),
            (_, value) => match scalar(value) {
                Some(text) => Ok(vec![format!("--{key}={text}").into()]),
                None => wrong("a text or a number"),
            },
        }
    }

    /// Has `command` look at the arguments of one option here, where it is known that the file has them.
    fn allowed(
        &self,
        key: &str,
        value: &Value,
        made: &[OsString],
        command: &Command,
    ) -> Result<(), Trouble> {
        let alone = [command.get_name().into()].into_iter().chain(made.iter().cloned());
        match command.clone().try_get_matches_from(alone) {
            Err(e) if e.kind() != ErrorKind::MissingRequiredArgument => {
                let text = e.to_string();
                let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
                // What clap says of the value stands behind its own words for it.
                let what = what.split_once(">': ").map_or(what, |(_, why)| why);
                let said = format!("{key} = {value}");
                Err(self.wrong(self.line_of(key, None), &said, what, ""))
            }
            _ => Ok(()),
        }
    }

    /// The line of a key, or of one in its table.
    fn line_of(&self, key: &str, inside: Option<&str>) -> Option<usize> {
        let table = DeTable::parse(&self.text).ok()?.into_inner();
        let (at, value) = table.get_key_value(key)?;
        let at = match inside {
            Some(name) => value.get_ref().as_table()?.get_key_value(name)?.0.span(),
            None => at.span(),
        };
        self.line(at.start)
    }

    fn line(&self, at: usize) -> Option<usize> {
        Some(self.text.get(..at)?.matches('\n').count() + 1)
    }

    fn wrong(&self, line: Option<usize>, said: &str, what: &str, hint: &str) -> Trouble {
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        let said = if said.is_empty() { String::new() } else { format!("{said}: ") };
        Trouble::new(format!("{}{line}: {said}{what}", self.path.display()), hint)
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

    /// Of two rates the last was taken without a word.
    #[test]
    fn an_option_given_twice_is_refused() {
        for text in ["", "rate = '50mbit'"] {
            let found = expanded(text, &["--rate=1mbit", "--rate", "2mbit"]).unwrap_err();
            assert!(found.contains("'--rate <RATE>' cannot be used multiple times"), "{found}");
        }
        let params = ["--rate=1mbit", "--param=increment=0.01", "--param=decrement=0.002"];
        assert_eq!(expanded("", &params).unwrap(), params);
    }

    #[test]
    fn what_is_wrong_is_named_with_file_key_and_value() {
        for (text, expected) in [
            ("rate = ", "FILE:1: "),
            ("rat = '1mbit'", "FILE:1: rat: no such option\nhint: did you mean `rate`?"),
            ("zzzzzzzzz = 1", "FILE:1: zzzzzzzzz: no such option\nhint: allowed: quiet, rate, "),
            ("\nrate = '1mbut'", "FILE:2: rate = \"1mbut\": allowed: "),
            ("rate = true", "FILE:1: rate = true: a text or a number is wanted"),
            ("quiet = 1", "FILE:1: quiet = 1: true or false is wanted"),
            ("param = 'x=1'", "FILE:1: param = \"x=1\": a table of names and values is wanted"),
            ("[param]\n\nx = []", "FILE:3: param.x = []: a text, a number, true or false"),
            ("config = 'other.toml'", "FILE:1: config: no such option"),
        ] {
            let found = expanded(text, &[]).unwrap_err();
            assert!(found.starts_with(&format!("error: {expected}")), "{text}: {found}");
        }
        // All that is wrong, at once.
        let found =
            expanded("queit = true\nrate = 1\ndelay = '5ms'\nbuffer = '9x'", &[]).unwrap_err();
        let lines: Vec<_> = found.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(lines.len(), 3, "{found}");
        for line in ["FILE:1: queit", "FILE:2: rate = 1", "FILE:4: buffer = "] {
            assert!(found.contains(line), "{line} in {found}");
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
