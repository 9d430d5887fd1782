//! What the process may still ask of the kernel once packets flow: system calls on a list, by seccomp,
//! for all threads and for good. Whoever made it run other code by a packet could start no program or
//! thread, open no file and no connection over a network, and look at no other process.
//!
//! The list is of what is allowed: what a forbidding list forgets would be there. A call beyond it
//! fails with EPERM, as one without the right to it, so that another version of the C library that
//! tries something new first goes on with what is known. Commands of a shell were started before and
//! are not concerned.

use std::collections::BTreeMap;

use nix::libc;
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
    libc::SYS_fcntl,
    libc::SYS_dup,
    // Questions, and the log of the kernel's own counts.
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    libc::SYS_ioctl,
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
    libc::SYS_tgkill,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_prctl,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// New sockets are for asking the kernel about interfaces: family and type.
const SOCKETS: [(libc::c_int, libc::c_int); 3] = [
    (libc::AF_UNIX, libc::SOCK_DGRAM),
    (libc::AF_NETLINK, libc::SOCK_DGRAM),
    (libc::AF_NETLINK, libc::SOCK_RAW),
];
/// Beside a socket's type.
const FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

/// Memory may become less, not executable.
const NOT_EXECUTABLE: u64 = !(libc::PROT_READ | libc::PROT_WRITE) as u32 as u64;

/// Forbids this process all else. One that `ends` what it has started may kill.
///
/// # Errors
/// When the kernel or the processor does not have it.
pub(crate) fn confine(ends: bool) -> Result<(), Trouble> {
    let failed = |e: &dyn std::fmt::Display| {
        Trouble::new(
            format!("confining the process by seccomp: {e}"),
            "it needs a kernel with CONFIG_SECCOMP_FILTER, on x86-64, ARM64 or RISC-V",
        )
    };
    let program = filter(ends).map_err(|e| failed(&e))?;
    apply_filter_all_threads(&program).map_err(|e| failed(&e))
}

fn filter(ends: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
    if ends {
        rules.insert(libc::SYS_kill, Vec::new());
    }
    let condition = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    };
    let sockets = SOCKETS.map(|(family, kind)| {
        SeccompRule::new(vec![
            condition(0, SeccompCmpOp::Eq, family as u64)?,
            condition(1, SeccompCmpOp::MaskedEq(u64::from(!FLAGS as u32)), kind as u64)?,
        ])
    });
    rules.insert(libc::SYS_socket, sockets.into_iter().collect::<Result<_, _>>()?);
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
    use super::*;

    #[test]
    fn the_filter_is_one_that_the_kernel_takes() {
        let program = filter(true).unwrap();
        assert!((50..500).contains(&program.len()), "{} instructions", program.len());
    }
}
