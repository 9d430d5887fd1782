//! Names the build after what it makes results with.

fn main() -> std::io::Result<()> {
    fingerprint::tell(&fingerprint::SIMULATOR, "BLUEWATER_VERSION")
}
