//! The system calls for which there is no safe wrapper.
#![expect(unsafe_code, reason = "two system calls take pointers to their own structures")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::libc;

mod request {
    nix::ioctl_write_ptr_bad!(
        /// Makes an open `/dev/net/tun` a device.
        set_device,
        nix::request_code_write!(b'T', 202, size_of::<nix::libc::c_int>()),
        nix::libc::ifreq
    );
}

/// Makes `file`, an open `/dev/net/tun`, the TUN device `name` in the caller's network namespace:
/// IP packets as they are, one each read and write. It goes when the file is closed.
pub(crate) fn tun(file: &File, name: &str) -> io::Result<()> {
    let mut ifr_name = [0; libc::IFNAMSIZ];
    if name.len() >= ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    let request =
        libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    // SAFETY: the call reads one `ifreq`, which lives until it returns.
    unsafe { request::set_device(file.as_raw_fd(), &request) }?;
    Ok(())
}
