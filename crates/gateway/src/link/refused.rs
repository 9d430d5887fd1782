//! What a link is refused for.

use aqm::any::BuildError;

use crate::trouble::Trouble;

/// Why there can be no such link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// The queue cannot be built.
    Queue(BuildError),
    /// Rate, delay or buffer are beyond what can be emulated; what is allowed.
    Beyond(String),
    /// The classes cannot be built, or do not go with the rest.
    Classes(Trouble),
}

pub(super) fn too_large(slots: u32) -> SpecError {
    SpecError::Beyond(format!("memory for the {slots} packets that buffer and wire can hold"))
}
