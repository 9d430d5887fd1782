//! Links of a file: a table of them as CSV, or a graph. They become `[[link]]` entries, so that the canonical
//! scenario has them and needs the file no more.

use std::collections::HashSet;
use std::str::FromStr;

use aqm::units::TextError;

use crate::arrivals::{self, Cable, Files};
use crate::error::{Complaint, beginning, did_you_mean};
use crate::network::{LinkSpec, Network, check_link};

/// The most links of a file.
const MOST_LINKS: usize = 100_000;

/// The columns of a table of links.
const COLUMNS: [&str; 4] = ["from", "to", "rate", "delay"];

impl Network {
    /// The links of its file behind `links`; rates and delays that the file leaves out are the network's. The
    /// file is not named any more.
    pub(crate) fn resolve(
        &mut self,
        links: &mut Vec<LinkSpec>,
        files: &mut dyn Files,
    ) -> Result<(), Complaint> {
        let Some(file) = self.file.take() else { return Ok(()) };
        if self.preset.is_some() {
            return Err(Complaint::new("network.file", "either a preset or the links of a file"));
        }
        let wrong = |problem| Complaint::wrong("network.file", problem);
        let is_graph = file.to_lowercase().ends_with(".graphml");
        let read = if is_graph { files.graph(&file) } else { files.text(&file).and_then(table) };
        let (cables, file) = read.map_err(wrong)?;
        let mut taken: HashSet<(String, String)> = HashSet::new();
        for link in links.iter() {
            taken.insert((link.from.clone(), link.to.clone()));
            if link.duplex {
                taken.insert((link.to.clone(), link.from.clone()));
            }
        }
        for cable in cables {
            let line = cable.line;
            let link = self.link(cable, &mut taken);
            links.push(link.map_err(|problem| wrong(format!("{file}: line {line}: {problem}")))?);
        }
        (self.rate, self.delay) = (None, None);
        Ok(())
    }

    /// A link of a file, checked; or what is wrong with it.
    fn link(
        &self,
        cable: Cable,
        taken: &mut HashSet<(String, String)>,
    ) -> Result<LinkSpec, String> {
        let Cable { from, to, one_way, .. } = cable;
        for (column, name) in [("from", &from), ("to", &to)] {
            if name.is_empty() || name.contains("->") {
                return Err(format!("{column} = \"{}\": a name without `->`", beginning(name)));
            }
        }
        if from == to {
            return Err(format!("a link from {} to itself", beginning(&from)));
        }
        let ways = [(from.clone(), to.clone()), (to.clone(), from.clone())];
        let clear = |way: &(String, String)| taken.insert(way.clone());
        if !ways[..=usize::from(!one_way)].iter().all(clear) {
            return Err(format!(
                "{} and {} are linked already: at most one link each way",
                beginning(&from),
                beginning(&to)
            ));
        }
        let rate = quantity("rate", &cable.rate, self.rate.map(|rate| rate.0))?;
        let delay = quantity("delay", &cable.delay, self.delay.map(|delay| delay.0))?;
        check_link(rate, delay, "rate", "delay")
            .map_err(|complaint| format!("{}: allowed: {}", complaint.key, complaint.allowed))?;
        Ok(LinkSpec::plain(from, to, rate, delay, !one_way))
    }
}

/// A quantity of a link, or what holds for all that have none.
fn quantity<T: FromStr<Err = TextError>>(
    column: &str,
    text: &str,
    default: Option<T>,
) -> Result<T, String> {
    if text.is_empty() {
        return default.ok_or_else(|| {
            format!("no {column}; give one, or {column} in [network] for all links without")
        });
    }
    text.parse().map_err(|TextError { allowed, hint }| {
        let hint = if hint.is_empty() { hint } else { format!("; {hint}") };
        format!("{column} = \"{}\": allowed: {allowed}{hint}", beginning(text))
    })
}

/// The links of a table, and the name of its file.
fn table(read: arrivals::Text) -> Result<(Vec<Cable>, String), String> {
    match rows(&read.text) {
        Ok(cables) => Ok((cables, read.file)),
        Err(problem) => Err(format!("{}: {problem}", read.file)),
    }
}

/// The rows of a table: columns by the names of its head.
fn rows(text: &str) -> Result<Vec<Cable>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let numbered = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let mut lines = numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let cells = |line: &str| -> Vec<String> {
        line.split(',').map(|cell| cell.trim().trim_matches('"').to_string()).collect()
    };
    let Some((number, head)) = lines.next() else { return Err("there is nothing in it".into()) };
    let head = cells(head);
    for name in &head {
        if !COLUMNS.contains(&name.as_str()) {
            let hint = did_you_mean(name, COLUMNS);
            let hint = if hint.is_empty() { hint } else { format!("; {hint}") };
            let (name, all) = (beginning(name), COLUMNS.join(", "));
            return Err(format!("line {number}: {name}: the head names columns: {all}{hint}"));
        }
    }
    let column = |name: &str| head.iter().position(|column| column == name);
    let (Some(from), Some(to)) = (column("from"), column("to")) else {
        return Err(format!("line {number}: the head names at least `from` and `to`"));
    };
    let mut cables = Vec::new();
    for (line, row) in lines {
        let row = cells(row);
        if row.len() != head.len() {
            let (columns, found) = (head.len(), row.len());
            return Err(format!(
                "line {line}: {columns} values are wanted, as in the head, not {found}"
            ));
        }
        if cables.len() == MOST_LINKS {
            return Err(format!("line {line}: more than {MOST_LINKS} links"));
        }
        let at = |name| column(name).map_or_else(String::new, |at| row[at].clone());
        let (from, to) = (row[from].clone(), row[to].clone());
        let (rate, delay) = (at("rate"), at("delay"));
        cables.push(Cable { line, from, to, rate, delay, one_way: false });
    }
    Ok(cables)
}

#[cfg(test)]
mod tests {
    use aqm::{Duration, Rate};

    use super::*;
    use crate::Scenario;
    use crate::arrivals::{Arrivals, Text};

    /// One file with this text.
    struct File(&'static str);

    impl Files for File {
        fn capture(
            &mut self,
            file: &str,
            _: Duration,
            _: &[crate::text::Text<crate::text::Network>],
        ) -> Result<Arrivals, String> {
            Err(file.into())
        }
        fn text(&mut self, file: &str) -> Result<Text, String> {
            Ok(Text { text: self.0.into(), file: file.into() })
        }
        fn graph(&mut self, file: &str) -> Result<(Vec<Cable>, String), String> {
            Err(file.into())
        }
    }

    const REST: &str = r#"
        [[queue]]
        link = "*"
        aqm = "droptail"
        buffer = "9p"
        [[traffic]]
        transport = "cubic"
        from = ["a"]
        to = ["b"]
    "#;

    fn read(network: &str, file: &'static str) -> Result<Scenario, String> {
        let text = format!("duration = \"1s\"\n[network]\nfile = \"wan.csv\"\n{network}\n{REST}");
        Scenario::with_files(&text, "x", &mut File(file)).map_err(|e| {
            assert_eq!((e.key.as_str(), e.line), ("network.file", Some(3)), "{e}");
            e.problem
        })
    }

    #[test]
    fn links_of_a_file_become_links_of_the_scenario() {
        let table = "# three\nto,from, rate,delay\nr,a,10gbit,5ms\n\nb,\"r\",,\n";
        let scenario =
            read("rate = \"1gbit\"\ndelay = \"7ms\"\nrouting = \"delay\"", table).unwrap();
        let echo = scenario.to_toml();
        assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario, "{echo}");
        assert!(!echo.contains("wan.csv") && echo.contains("routing"), "{echo}");
        let topology = scenario.topology().unwrap();
        for (name, rate, delay) in [("a->r", 10_000, 5), ("r->a", 10_000, 5), ("b->r", 1000, 7)] {
            let link = &topology.links[topology.find_link(name, "").unwrap()];
            let wanted = (Rate::from_mbit(rate), Duration::from_millis(delay));
            assert_eq!((link.rate, link.delay), wanted, "{name}");
        }
        assert_eq!(topology.links.len(), 4);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        for (table, said) in [
            ("", "wan.csv: there is nothing in it"),
            ("a,b,1gbit,1ms\n", "line 1: a: the head names columns: from, to, rate, delay"),
            (
                "from,to,rate,dely\n",
                "line 1: dely: the head names columns: from, to, rate, delay; did you mean `delay`?",
            ),
            ("from,rate,delay\na,1gbit,1ms\n", "line 1: the head names at least"),
            (
                "from,to,rate,delay\na,b,1gbit\n",
                "line 2: 4 values are wanted, as in the head, not 3",
            ),
            ("from,to,rate,delay\n# x\na,b,10,1ms\n", "line 3: rate = \"10\": allowed:"),
            ("from,to,rate,delay\na,b,1gbit,-1ms\n", "line 2: delay = \"-1ms\": allowed:"),
            ("from,to,rate,delay\na,b,1gbit,3h\n", "line 2: delay: allowed: at most 3600s"),
            ("from,to,rate\na,b,1gbit\n", "line 2: no delay; give one, or delay in [network]"),
            ("from,to,rate,delay\na,a,1gbit,1ms\n", "line 2: a link from a to itself"),
            (
                "from,to,rate,delay\na,b,1gbit,1ms\nb,a,1gbit,1ms\n",
                "line 3: b and a are linked already",
            ),
            (
                "from,to,rate,delay\na,x->b,1gbit,1ms\n",
                "line 2: to = \"x->b\": a name without `->`",
            ),
            ("from,to,rate,delay\n,b,1gbit,1ms\n", "line 2: from = \"\": a name"),
            ("from,to,rate,delay\n\u{1b}[31m,b,fast,1ms\n", "line 2: rate = \"fast\""),
        ] {
            let problem = read("", table).unwrap_err();
            assert!(problem.contains(said), "{said} in: {problem}");
        }
        let e = read("preset = \"dumbbell\"", "").unwrap_err();
        assert_eq!(e, "not allowed");
    }

    #[test]
    fn a_file_has_so_many_links_at_most() {
        let mut text = String::from("from,to\n");
        (0..=MOST_LINKS).for_each(|i| text += &format!("a,b{i}\n"));
        assert!(rows(&text).unwrap_err().contains("more than 100000 links"));
        let long = rows(&"x".repeat(5_000_000)).unwrap_err();
        assert!(long.len() < 300, "{long}");
    }
}
