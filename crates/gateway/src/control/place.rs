//! Where control sockets are: in a folder of the user's alone. Another user who could put a socket there
//! would be asked in a gateway's place, and in a public folder anybody may take the name first. So a folder
//! is checked after it is opened, and everything is done through that open folder, whatever becomes of its
//! name.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, fs};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{Mode, fstatat, mkdirat, umask};
use nix::unistd::{Gid, Uid, UnlinkatFlags, geteuid, unlinkat};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::trouble::Trouble;

/// Where sockets of `user` are looked for, the best place first. What the environment says is where this
/// user's are.
pub(crate) fn candidates(user: Uid) -> Vec<PathBuf> {
    let own = user == geteuid();
    let variable = |name| env::var_os(name).filter(|_| own).map(PathBuf::from);
    let runtime = variable("XDG_RUNTIME_DIR")
        .or_else(|| (!own).then(|| PathBuf::from(format!("/run/user/{user}"))))
        .map(|folder| folder.join("bluewater"));
    // A service's folder, by systemd (`RuntimeDirectory=bluewater`); of several the first.
    let service = variable("RUNTIME_DIRECTORY").and_then(|folders| {
        let first = folders.to_str()?.split(':').next()?;
        Some(PathBuf::from(first))
    });
    let system = (user.is_root() || !own).then(|| PathBuf::from("/run/bluewater"));
    let temporary = env::temp_dir().join(format!("bluewater-{user}"));
    runtime.into_iter().chain(service).chain(system).chain([temporary]).collect()
}

/// Whether members of a group may get as far as what is in the folder `path`.
pub(super) fn is_public(path: &Path) -> bool {
    let above = path.parent().and_then(|above| fs::metadata(above).ok());
    above.is_some_and(|above| above.mode() & 0o001 != 0)
}

/// An open folder that only this user can look into. Others may reach sockets in it that let them.
#[derive(Debug)]
pub(crate) struct Folder {
    file: File,
}

impl Folder {
    /// Opens the folder of `user` at `path`, after making it if that is wanted; nothing if there is none.
    ///
    /// # Errors
    /// When it is not that user's alone, or its name could be given to another.
    pub(crate) fn open(path: &Path, user: Uid, make: bool) -> Result<Option<Self>, Trouble> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
        let system = |e: io::Error| Trouble::system(path.display(), e);
        let parent = match File::open(above) {
            Ok(parent) => parent,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Trouble::system(above.display(), e)),
        };
        let found = parent.metadata().map_err(system)?;
        if !found.is_dir() || !keeps_names(&found, user) {
            return Err(foreign(above, "others may rename what is in it"));
        }
        if make
            && let Err(e) = mkdirat(&parent, name, Mode::S_IRWXU)
            && e != Errno::EEXIST
        {
            return Err(system(e.into()));
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = openat(&parent, name, flags, Mode::empty()).or_else(|e| match e {
            Errno::EACCES if !make => openat(&parent, name, flags | OFlag::O_PATH, Mode::empty()),
            e => Err(e),
        });
        let file = match opened {
            Ok(folder) => File::from(folder),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ENOTDIR | Errno::ELOOP) => {
                return Err(foreign(path, "it is a link or no folder"));
            }
            Err(Errno::EACCES) => return Err(foreign(path, "it is another user's")),
            Err(e) => return Err(system(e.into())),
        };
        let found = file.metadata().map_err(system)?;
        if found.uid() != user.as_raw() {
            return Err(foreign(path, &format!("it belongs to user {}", found.uid())));
        }
        if found.mode() & 0o066 != 0 {
            let why = format!("its mode {:o} lets others in", found.mode() & 0o777);
            return Err(foreign(path, &why));
        }
        Ok(Some(Self { file }))
    }

    /// A path to `file` in it that no renaming can lead elsewhere, and that is short enough for a
    /// socket.
    fn inside(&self, file: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{file}", self.file.as_raw_fd()).into()
    }

    /// A connection to the socket `file`.
    pub(crate) fn connect(&self, file: &str) -> io::Result<UnixStream> {
        UnixStream::connect(self.inside(file))
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.inside("")).into_iter().flatten().flatten();
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Makes the socket `file`, for this user and `group`; nothing if somebody answers there.
    pub(crate) fn listen(
        &self,
        file: &str,
        group: Option<Gid>,
    ) -> io::Result<Option<(UnixListener, Entry)>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let again = openat(&self.file, ".", flags, Mode::empty())?;
        // Keeps others from doing the same between the question and the new socket.
        let _alone = Flock::lock(again, FlockArg::LockExclusive).map_err(|(_, e)| e)?;
        match self.connect(file) {
            Ok(_) => return Ok(None),
            // Only then is nobody there.
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {}
            Err(e) => return Err(e),
        }
        let remove = || _ = unlinkat(&self.file, file, UnlinkatFlags::NoRemoveDir);
        remove();
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(self.inside(file));
        umask(before);
        let listener = listener?;
        let shared = group.map_or(Ok(()), |group| self.share(file, group));
        let entry = shared
            .and_then(|()| self.file.try_clone())
            .and_then(|folder| Entry::watch(folder, file));
        Ok(Some((listener, entry.inspect_err(|_| remove())?)))
    }

    /// Lets a group ask at the socket `file`.
    fn share(&self, file: &str, group: Gid) -> io::Result<()> {
        chown(self.inside(file), None, Some(group.as_raw()))?;
        fs::set_permissions(self.inside(file), Permissions::from_mode(0o660))?;
        self.file.set_permissions(Permissions::from_mode(0o711))
    }
}

/// Why a folder is not used.
fn foreign(path: &Path, why: &str) -> Trouble {
    Trouble::new(
        format!("{}: not used for control sockets: {why}", path.display()),
        "set XDG_RUNTIME_DIR to a folder of your own, with mode 0700",
    )
}

/// Whether nobody but its owner, who is `user` or root, can rename entries of a folder: only the owner may
/// write to it, or it is sticky.
pub(crate) fn keeps_names(folder: &Metadata, user: Uid) -> bool {
    const STICKY: u32 = 0o1000;
    // In a user namespace root of the machine has the number of all who have none.
    let trusted = [0, user.as_raw(), OVERFLOW];
    trusted.contains(&folder.uid()) && (folder.mode() & 0o022 == 0 || folder.mode() & STICKY != 0)
}

/// The user's number that stands for those without one.
const OVERFLOW: u32 = 65_534;

/// A socket's name in a folder. It goes with the process, however that ends and whatever rights it
/// has given up: another one, which keeps them and does nothing else, waits for that.
#[derive(Debug)]
pub(crate) struct Entry {
    alive: UnixStream,
    /// A test is another program, whose own name for [`sweep`] means nothing.
    #[cfg(test)]
    swept: Option<(File, String, u64)>,
}

/// Its end is what the other process waits for.
impl AsFd for Entry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.alive.as_fd()
    }
}

#[cfg(test)]
impl Drop for Entry {
    fn drop(&mut self) {
        if let Some((folder, file, number)) = &self.swept {
            remove(folder, file, *number);
        }
    }
}

/// The command line's own name for [`sweep`], which users need not know.
pub const SWEEP: &str = "bound-sweep";

impl Entry {
    /// That of another process.
    pub(super) fn taken_over(alive: UnixStream) -> Self {
        Self {
            alive,
            #[cfg(test)]
            swept: None,
        }
    }

    fn watch(folder: File, file: &str) -> io::Result<Self> {
        let (alive, end) = UnixStream::pair()?;
        let number = number(&folder, file)?;
        #[cfg(test)]
        let swept = Some((folder.try_clone()?, file.to_string(), number));
        let mut sweeper = Command::new("/proc/self/exe");
        sweeper.args([SWEEP, file, &number.to_string()]).env_clear();
        let folder = Stdio::from(OwnedFd::from(folder));
        sweeper.stdin(OwnedFd::from(end)).stdout(folder).stderr(Stdio::null());
        // Ctrl-C is not for it.
        std::os::unix::process::CommandExt::process_group(&mut sweeper, 0);
        sweeper.spawn()?;
        Ok(Self {
            alive,
            #[cfg(test)]
            swept,
        })
    }
}

/// The number of a file in a folder, which no other has meanwhile.
fn number(folder: &File, file: &str) -> nix::Result<u64> {
    Ok(fstatat(folder, file, AtFlags::AT_SYMLINK_NOFOLLOW)?.st_ino)
}

/// Waits until standard input ends and removes `file` from the folder that is standard output, if it
/// still has this `number`.
pub fn sweep(file: &str, number_then: u64) {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        _ = signal_hook::flag::register(signal, Arc::default());
    }
    _ = io::copy(&mut io::stdin(), &mut io::sink());
    let Ok(folder) = nix::unistd::dup(io::stdout()) else { return };
    remove(&File::from(folder), file, number_then);
}

/// Removes a file from a folder if it still has this number.
fn remove(folder: &File, file: &str, number_then: u64) {
    if number(folder, file) == Ok(number_then) {
        _ = unlinkat(folder, file, UnlinkatFlags::NoRemoveDir);
    }
}

/// A name that can be that of a file.
///
/// # Errors
/// What is allowed.
pub fn name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let option = text.starts_with('-');
    if (1..=MAX_NAME).contains(&text.len()) && text.chars().all(good) && !option {
        Ok(text.into())
    } else {
        Err(format!("allowed: 1 to {MAX_NAME} letters, digits, _ and, but for the first, -"))
    }
}

const MAX_NAME: usize = 32;

/// The name of the socket of the gateway `name`.
pub(super) fn file(name: &str) -> String {
    format!("{name}.sock")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_used_only_if_it_is_ours_alone() {
        let above = tempfile::tempdir().unwrap();
        let path = |name: &str| above.path().join(name);
        let refused = |path: &Path| Folder::open(path, geteuid(), true).map(drop).unwrap_err().what;
        let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));

        assert!(Folder::open(&path("new"), geteuid(), false).unwrap().is_none());
        let new = Folder::open(&path("new"), geteuid(), true).unwrap().unwrap();
        assert_eq!(new.file.metadata().unwrap().mode() & 0o777, 0o700);
        mode(&path("new"), 0o750).unwrap();
        assert!(refused(&path("new")).contains("mode 750"));
        symlink(path("new"), path("link")).unwrap();
        assert!(refused(&path("link")).contains("a link or no folder"));
        fs::write(path("file"), "").unwrap();
        assert!(refused(&path("file")).contains("a link or no folder"));

        mode(above.path(), 0o777).unwrap();
        assert!(refused(&path("other")).contains("others may rename"));
        mode(above.path(), 0o1777).unwrap();
        assert!(Folder::open(&path("other"), geteuid(), true).unwrap().is_some());
        assert!(Folder::open(&path("no/other"), geteuid(), true).unwrap().is_none());
        if geteuid().is_root() {
            std::os::unix::fs::chown(path("other"), Some(1234), None).unwrap();
            assert!(refused(&path("other")).contains("belongs to user 1234"));
            std::os::unix::fs::chown(above.path(), Some(1234), None).unwrap();
            assert!(refused(&path("other")).contains("others may rename"));
        }
    }
}
