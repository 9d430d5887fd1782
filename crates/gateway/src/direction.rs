//! The two ways through a gateway.

/// What they are called, in the order of all pairs of links: away from the command or the LAN, and back.
pub const DIRECTIONS: [&str; 2] = ["up", "down"];
