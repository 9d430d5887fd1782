//! A tree of classes on a link: a packet's class follows from the address of a customer, who is on the LAN.

use aqm::fair::htb::ClassCount;
use aqm::{AnyQdisc, Carried, Env, Rate, Rng};
use scenario::classes::ClassSpec;
use scenario::error::Complaint;
use scenario::tree::{Addresses, TreeSpec};

use super::{Link, SpecError};
use crate::frame::Flow;

/// Classes, and which addresses they have.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The classes.
    pub tree: TreeSpec,
    addresses: Addresses,
    /// Whether customers are those that packets go to, and not those that they are from.
    down: bool,
}

impl PartialEq for Classes {
    fn eq(&self, other: &Self) -> bool {
        self.tree == other.tree && self.down == other.down
    }
}

impl Classes {
    /// For the way up, or the way `down`.
    ///
    /// # Errors
    /// Addresses that two classes have.
    pub fn new(tree: TreeSpec, down: bool) -> Result<Self, Complaint> {
        Ok(Self { addresses: tree.addresses()?, tree, down })
    }

    /// The class of a packet. What is no IP packet, or a broken one, has no flow and is the default's.
    #[inline]
    pub(super) fn class(&self, flow: &Flow) -> u16 {
        if *flow == Flow::default() {
            return self.addresses.default_class();
        }
        self.addresses.class(if self.down { flow.destination } else { flow.source })
    }

    /// The tree, empty; leaves without a discipline of their own have `aqm`.
    pub(super) fn queue<P: Carried>(
        &self,
        (aqm, params): (&str, &[(String, String)]),
        env: &Env,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, SpecError> {
        // What is wrong with the discipline of the options is told as without classes.
        let given: Vec<_> = params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        AnyQdisc::<()>::build(aqm, &given, env, &mut rng.clone()).map_err(SpecError::Queue)?;
        self.tree.build(aqm, params, env, rng).map_err(|Complaint { key, allowed, .. }| {
            SpecError::Classes(format!("{key}: allowed: {allowed}"), "in the file of --classes")
        })
    }

    /// Refuses a link of `rate` that would decide in place of the classes.
    pub(super) fn below(&self, rate: Rate) -> Result<(), SpecError> {
        let ceil = self.tree.ceil();
        if ceil <= rate {
            return Ok(());
        }
        let root = &self.tree.class[0].name;
        Err(SpecError::Classes(
            format!("the class {root} may have {ceil}, and the link only {rate}"),
            "a higher --rate, or less for the class: else the link decides, which knows no classes",
        ))
    }
}

/// Parameters of the disciplines of leaves, with their names; `own` are those of leaves without another one.
pub(crate) fn of_leaves<'a>(
    classes: Option<&'a Classes>,
    own: (&'a str, &'a [(String, String)]),
) -> Vec<(&'a str, Vec<(&'a str, String)>)> {
    let texts = |params: &'a [(String, String)]| {
        params.iter().map(|(name, text)| (name.as_str(), text.clone())).collect()
    };
    let Some(classes) = classes else { return vec![(own.0, texts(own.1))] };
    let of = |leaf: &'a ClassSpec| match &leaf.aqm {
        None => (own.0, texts(own.1)),
        Some(aqm) => {
            let params = leaf.params.iter().map(|(name, value)| (&name[..], value.to_string()));
            (aqm.as_str(), params.collect())
        }
    };
    classes.tree.leaves().map(of).collect()
}

impl Link {
    /// What each of its classes did since the queue discipline began, if it has some.
    pub fn classes(&self) -> Option<Vec<(&ClassSpec, ClassCount)>> {
        let classes = self.spec.classes.as_ref()?;
        let counts = self.queue.current().as_tree()?.counts();
        Some(classes.tree.class.iter().zip(counts).collect())
    }
}
