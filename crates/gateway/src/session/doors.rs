//! Where users ask a gateway: its control socket, its metrics and its live page.

use std::os::fd::{AsFd as _, BorrowedFd};

use serde_json::{Value, json};

use super::{Forwarding, selftest};
use crate::control::Control;
use crate::control::metrics::Metrics;
use crate::control::web::Web;
use crate::link::Spec;
use crate::trouble::{Trouble, say};
use crate::upgrade::Predecessor;

/// Where questions come from.
pub struct Doors {
    pub(super) control: Control,
    pub(super) metrics: Option<Metrics>,
    pub(super) web: Option<Web>,
    /// Facts for the live page.
    pub(super) about: Value,
    pub(super) ceiling: Option<f64>,
}

/// Warns of classes that are promised more than those above them have.
pub(super) fn warn_overbooked<'a>(specs: impl Iterator<Item = &'a Spec>) {
    let mut warnings: Vec<_> =
        specs.filter_map(|spec| spec.classes.as_ref()?.overbooked()).collect();
    // Both ways may have one file.
    warnings.dedup();
    warnings.into_iter().for_each(say);
}

impl Doors {
    /// Opens the doors that `how` names. Prints their addresses, and a warning if the links are too fast for
    /// this machine.
    ///
    /// # Errors
    /// When a name or a port is taken.
    pub fn open(how: &Forwarding, specs: &[Spec; 2]) -> Result<Self, Trouble> {
        let ceiling = selftest::ceiling(specs);
        if let Some(warning) = ceiling.and_then(|ceiling| selftest::warning(specs, ceiling)) {
            say(warning);
        }
        warn_overbooked(specs.iter());
        let metrics = how.metrics.map(Metrics::bind).transpose()?;
        if let Some(metrics) = &metrics {
            say(format!("metrics: {}", metrics.url()));
        }
        let web = how.web.map(Web::bind).transpose()?;
        if let Some(web) = &web {
            say(format!("web: {}", web.url()));
        }
        let control = Control::bind(how.name.as_deref(), how.group)?;
        let about = json!({"name": control.name(), "recorded": how.record.is_some()});
        Ok(Self { control, metrics, web, about, ceiling })
    }

    /// The doors of an `old` gateway.
    ///
    /// # Errors
    /// When it left one out.
    pub(crate) fn taken_over(
        how: &Forwarding,
        specs: &[Spec; 2],
        old: &mut Predecessor,
    ) -> Result<Self, Trouble> {
        let estate = &mut old.estate;
        let word = |word: &Value| word.as_str().unwrap_or_default().to_string();
        let [name, root] = ["name", "web"].map(|fact| word(estate.fact(fact)));
        let [listener, alive] = [estate.need("control socket")?, estate.need("sweeper")?];
        let control = Control::taken_over(name, how.group, listener, alive);
        let metrics = how.metrics.map(|_| estate.need("metrics").map(|it| Metrics(it.into())));
        let web = how.web.map(|_| estate.need("web").map(|it| Web::taken_over(it, &root)));
        let about = json!({"name": control.name(), "recorded": false});
        let ceiling = selftest::ceiling(specs);
        Ok(Self { control, metrics: metrics.transpose()?, web: web.transpose()?, about, ceiling })
    }

    /// The open files and the facts that this needs.
    pub(crate) fn parts(&self) -> (Vec<(&'static str, BorrowedFd<'_>)>, Value) {
        let metrics = self.metrics.iter().map(|it| ("metrics", it.0.as_fd()));
        let web = self.web.as_ref().map(Web::parts);
        let page = web.iter().map(|(listener, _)| ("web", *listener));
        let facts = json!({"name": self.control.name(), "web": web.map(|(_, root)| root)});
        (self.control.files().into_iter().chain(metrics).chain(page).collect(), facts)
    }

    /// The gateway's name for `ctl`.
    pub(crate) fn name(&self) -> &str {
        self.control.name()
    }
}
