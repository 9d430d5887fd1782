//! The table of paths: runs of link numbers, each with what is known of the link in the highest bits.

// Bits of an entry in the table of paths, beside the link's number:
/// The link is folded after the one before it.
pub(super) const FOLDED: u32 = 1 << 31;
/// The link merges the one before it with others.
pub(super) const MERGES: u32 = 1 << 30;
/// The next entry has one of these two bits.
pub(super) const GOES_ON: u32 = 1 << 29;
/// The link has a managed queue, or is a wire that impairs, or there is none: the path ends.
pub(super) const NOT_PLAIN: u32 = 1 << 28;
pub(super) const BITS: u32 = FOLDED | MERGES | GOES_ON | NOT_PLAIN;
/// Belongs to another part of the network.
pub(super) const ELSEWHERE: u32 = NOT_PLAIN | (NOT_PLAIN - 2);
/// Ends a path in the table of paths.
pub const END: u32 = NOT_PLAIN | (NOT_PLAIN - 1);
