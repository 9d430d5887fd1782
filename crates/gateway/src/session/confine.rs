//! Confines the process by seccomp once packets flow: only system calls on a list, for all threads and for
//! good. An attacker whose packet made it run other code could start no program or thread, open no file and
//! no socket, send to no interface but those that are open, type into no terminal, and look at no other
//! process.
//!
//! The list names allowed calls, since a list of forbidden ones could forget some. Any other call fails with
//! EPERM, as if rights were missing; a newer C library that tries a new call first then falls back to a known
//! one. The commands of a shell were started before and are not confined.

use std::collections::BTreeMap;

use nix::libc;
use nix::unistd::getpid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

use crate::trouble::Trouble;

/// Whatever their arguments.
const ALLOWED: &[libc::c_long] = &[
    // Packets, files that are open, and waiting for them.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_ftruncate,
    libc::SYS_dup,
    // Questions, and the log of the kernel's own counts.
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    // Time.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    // Threads that are there, and commands that end.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Only with one of these values of an argument: the call, the argument, the values.
const ALLOWED_WITH: [(libc::c_long, u8, &[libc::c_int]); 3] = [
    // Not TIOCSTI, which types into a terminal, nor anything about an interface.
    (libc::SYS_ioctl, 1, &[libc::FIONBIO as libc::c_int]),
    (
        libc::SYS_fcntl,
        1,
        &[
            libc::F_GETFD,
            libc::F_SETFD,
            libc::F_GETFL,
            libc::F_SETFL,
            libc::F_DUPFD_CLOEXEC,
            libc::F_OFD_SETLK,
            libc::F_OFD_GETLK,
        ],
    ),
    // What a new thread is called; not whether others may look into this process.
    (libc::SYS_prctl, 0, &[libc::PR_SET_NAME]),
];

/// Options of sockets that may be set: how long to wait for the other side.
const OPTIONS: [libc::c_int; 2] = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO];

/// Memory may become less, not executable.
const NOT_EXECUTABLE: u64 = !(libc::PROT_READ | libc::PROT_WRITE) as u32 as u64;

/// Forbids this process all other calls. With `commands` it may end them and pass their files to users who
/// join: it can only signal processes that it has open, and it has no socket that sends frames elsewhere.
///
/// # Errors When the kernel or the processor does not support it.
pub(crate) fn confine(commands: bool) -> Result<(), Trouble> {
    let failed = |e: &dyn std::fmt::Display| {
        Trouble::new(
            format!("confining the process by seccomp: {e}"),
            "it needs a kernel with CONFIG_SECCOMP_FILTER, on x86-64, ARM64 or RISC-V",
        )
    };
    let program = filter(commands).map_err(|e| failed(&e))?;
    apply_filter_all_threads(&program).map_err(|e| failed(&e))
}

fn filter(commands: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
    if commands {
        // An address of `sendmsg` lies in memory, where no filter looks.
        rules.insert(libc::SYS_pidfd_send_signal, Vec::new());
        rules.insert(libc::SYS_sendmsg, Vec::new());
    }
    let condition = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    };
    let is = |argument, value: libc::c_int| {
        condition(argument, SeccompCmpOp::Eq, u64::from(value as u32))
    };
    for (call, argument, values) in ALLOWED_WITH {
        let one = |&value: &libc::c_int| SeccompRule::new(vec![is(argument, value)?]);
        rules.insert(call, values.iter().map(one).collect::<Result<_, _>>()?);
    }
    let option = |option| SeccompRule::new(vec![is(1, libc::SOL_SOCKET)?, is(2, option)?]);
    rules.insert(libc::SYS_setsockopt, OPTIONS.into_iter().map(option).collect::<Result<_, _>>()?);
    // To where the socket is connected or bound.
    let nowhere_else = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![nowhere_else])?]);
    // As `abort` does.
    let own = is(0, getpid().as_raw())?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![own])?]);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let rule = condition(2, SeccompCmpOp::MaskedEq(NOT_EXECUTABLE), 0)?;
        rules.insert(call, vec![SeccompRule::new(vec![rule])?]);
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture)?.try_into()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::thread;
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::sys::prctl;
    use nix::sys::signal::kill;
    use nix::unistd::{Pid, getppid};

    use super::*;
    use crate::sys;

    /// An attacker's next steps, tried in a thread that has the filter.
    #[test]
    fn what_leads_out_is_refused() {
        for commands in [false, true] {
            let program = filter(commands).unwrap();
            let terminal = File::open("/dev/ptmx").unwrap();
            let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let results = thread::spawn(move || {
                seccompiler::apply_filter(&program).unwrap();
                let error = |e: std::io::Error| Errno::from_raw(e.raw_os_error().unwrap());
                let refused = [
                    sys::type_into(&terminal, b'x'),
                    sys::rebind(&datagrams),
                    datagrams.send_to(b"x", "127.0.0.1:9").map(drop).map_err(error),
                    UdpSocket::bind("127.0.0.1:0").map(drop).map_err(error),
                    datagrams.set_broadcast(true).map_err(error),
                    prctl::set_dumpable(true),
                    kill(getppid(), None),
                    sys::signal_thread(getppid()),
                    sys::process(Pid::this()).map(drop).map_err(error),
                    File::open("/dev/null").map(drop).map_err(error),
                ];
                let granted = [
                    stream.set_nonblocking(true),
                    stream.set_read_timeout(Some(Duration::from_secs(1))),
                    stream.try_clone().map(drop),
                    std::io::Write::write_all(&mut stream, b"x"),
                ];
                (refused, granted.map(|done| done.is_ok()))
            });
            let (refused, granted) = results.join().unwrap();
            assert_eq!(refused, [Err(Errno::EPERM); 10]);
            assert_eq!(granted, [true; 4]);
        }
    }

    #[test]
    fn the_filter_is_one_that_the_kernel_takes() {
        let program = filter(true).unwrap();
        assert!((50..500).contains(&program.len()), "{} instructions", program.len());
    }
}
