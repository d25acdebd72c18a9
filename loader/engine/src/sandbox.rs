//! What limits a worker. Before a plugin is loaded, the process gives up the network, all files but some, and
//! all that would get these back. Nothing that it does later gives a right again.
//!
//! Landlock (Linux 5.13) keeps files from it, by path, for everything that is opened later. Seccomp blocks
//! other ways: sockets, other processes, calls that change a file without opening it, and calls that would
//! undo this. Its filter sees numbers and no paths.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::{Path, PathBuf},
};

use forebay_core::{Error, Result};
use forebay_graph::Graph;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use libc::c_long;
use rustix::process::{Resource, Rlimit, getpid, getrlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};
use serde::{Deserialize, Serialize};

/// The most bytes of its own that a worker in a sandbox may have, unless set.
pub const MEMORY: u64 = 4 << 30;
/// The most paths that are let through one by one; of more, their folders are.
const PATHS: usize = 1024;
/// Beside libraries: what the C library, Rust's and others read of the machine, and devices that give nothing away.
const SYSTEM: [&str; 18] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/sys/vm",
    "/sys/devices/system",
    "/sys/fs/cgroup",
];
/// What a worker in a sandbox is told of the environment; the rest may hold secrets.
pub(crate) const KEPT: [&str; 8] =
    ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "RUST_BACKTRACE", "RUST_MIN_STACK", "GLIBC_TUNABLES"];

// Newer than `libc` knows, and the same on all machines.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;
/// Of a number: a call of the x32 kind, which goes by other numbers on the same machine.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// What is refused whatever it is asked for.
const REFUSED: &[c_long] = &[
    // Sockets, and whatever else reaches another process.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pidfd_getfd,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Other programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // What goes round the filter, or would lift a limit.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_setrlimit,
    libc::SYS_setpriority,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_ioprio_set,
    libc::SYS_personality,
    // What changes files without opening them.
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    FCHMODAT2,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// What only older machines know: the same under other numbers.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_creat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// What a worker in a sandbox was handed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    /// Files, and folders with all in them, that it may read.
    read: Vec<PathBuf>,
    /// The most bytes of its own.
    memory: u64,
}

impl Sandbox {
    /// For the workers of a graph, with the files of its plugins.
    ///
    /// # Errors
    /// `Limit`, when the graph names more folders than a sandbox can be told.
    pub(crate) fn new<'a>(
        graph: &Graph,
        plugins: impl Iterator<Item = &'a Path>,
        memory: u64,
    ) -> Result<Self> {
        let mut named = BTreeSet::new();
        for node in graph.nodes() {
            let source = node.inputs.is_empty();
            node.options.values().for_each(|value| paths_in(value, source, &mut named));
        }
        named.remove(Path::new("/")); // As a separator says, or the first group of a file.
        if named.len() > PATHS {
            let folder = |path: &PathBuf| match path.parent() {
                Some(folder) if !path.is_dir() => folder.to_owned(),
                _ => path.clone(),
            };
            named = named.iter().map(folder).collect();
        }
        if named.len() > PATHS {
            let message = format!(
                "the graph names files of {} folders, expected at most {PATHS} in a sandbox",
                named.len()
            );
            return Err(Error::limit(message).context("next", "name a folder that holds all of them"));
        }
        let libraries = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let libraries = env::split_paths(&libraries).filter(|path| path.is_absolute());
        let read = plugins.map(Path::to_owned).chain(libraries).chain(SYSTEM.map(PathBuf::from));
        Ok(Self { read: read.chain(named).collect(), memory })
    }

    /// Gives all else up; before there is any other thread, since each has its own rights.
    ///
    /// # Errors
    /// `Unsupported`, where the system cannot keep it to that: a sandbox that is none is not entered.
    pub(super) fn enter(&self) -> Result<()> {
        let unable = |what: &str, why: &dyn std::fmt::Display| {
            let hint = "isolate the plugin as process, which works on every kernel";
            Error::unsupported(format!("this machine cannot make a sandbox: {what}: {why}"))
                .context("next", hint)
        };
        let maximum = getrlimit(Resource::Data).maximum;
        let most = Some(maximum.map_or(self.memory, |maximum| maximum.min(self.memory)));
        for (resource, most) in [(Resource::Data, most), (Resource::Core, Some(0))] {
            let limit = Rlimit { current: most, maximum: most };
            setrlimit(resource, limit).map_err(|error| unable("limits", &error))?;
        }
        self.landlock().map_err(|error| unable("Landlock (Linux 5.13)", &error))?;
        // Last, since the filter refuses what was done above.
        for filter in filters().map_err(|error| unable("seccomp", &error))? {
            apply_filter(&filter).map_err(|error| unable("seccomp", &error))?;
        }
        Ok(())
    }

    fn landlock(&self) -> Result<(), Box<dyn std::error::Error>> {
        let first = AccessFs::from_all(ABI::V1);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(first)?
            // What later kernels can withhold, where this is one of them.
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(ABI::V5))?
            .handle_access(AccessNet::from_all(ABI::V5))?
            .scope(Scope::from_all(ABI::V6))?
            .create()?;
        for path in &self.read {
            // One that is not there gives nothing.
            let Ok(open) = PathFd::new(path) else { continue };
            let rights = match path.is_dir() {
                true => AccessFs::ReadFile | AccessFs::ReadDir,
                false => AccessFs::ReadFile.into(),
            };
            rules = rules.add_rule(PathBeneath::new(open, rights))?;
        }
        match rules.restrict_self()?.ruleset {
            RulesetStatus::NotEnforced => Err("the kernel does not enforce it".into()),
            _ => Ok(()),
        }
    }
}

/// The files and folders that a value names; of a `source` also those that patterns match in.
fn paths_in(value: &serde_json::Value, source: bool, found: &mut BTreeSet<PathBuf>) {
    match value {
        serde_json::Value::String(text) => found.extend(path_of(text, source)),
        serde_json::Value::Array(items) => items.iter().for_each(|item| paths_in(item, source, found)),
        serde_json::Value::Object(members) => {
            members.values().for_each(|item| paths_in(item, source, found));
        }
        _ => {}
    }
}

fn path_of(text: &str, source: bool) -> Option<PathBuf> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    // As it stands first: a name may have a bracket in it. A word is more often a name than a folder.
    if let Ok(path) = std::fs::canonicalize(text) {
        return (source || text.contains('/') || path.is_file()).then_some(path);
    }
    let fixed = &text[..text.find(['*', '?', '[', '{']).filter(|_| source)?];
    let folder = match fixed.rfind('/') {
        Some(0) => "/",
        Some(end) => &fixed[..end],
        None => ".",
    };
    std::fs::canonicalize(folder).ok()
}

/// Of `fcntl`: who gets signals of a descriptor, and which.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// Refuses calls of the x32 kind, which the other filters know by no number: four instructions of the classic BPF.
#[cfg(target_arch = "x86_64")]
fn x32() -> BpfProgram {
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EACCES.cast_unsigned();
    [
        // The number, which comes first in what a filter sees; by it to the third line or to the fourth.
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        (libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
        (libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
    // Invariant: a code has 16 bits.
    .map(|(code, jt, jf, k)| sock_filter { code: code as u16, jt, jf, k })
    .to_vec()
}

/// The filters: one for what may not be done, and one for what is answered as if the kernel did not know it.
fn filters() -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let own = getpid().as_raw_nonzero().get().cast_unsigned();
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(OLDER).map(|&call| (call, Vec::new())).collect();
    let mut when = |call: c_long, (argument, len): (u8, Len), op: Op, value: u64| {
        let rule = SeccompRule::new(vec![SeccompCondition::new(argument, len, op, value)?])?;
        refused.entry(call).or_default().push(rule);
        Ok::<_, seccompiler::BackendError>(())
    };
    // Threads are made, and no processes.
    when(libc::SYS_clone, (0, Len::Qword), Op::MaskedEq(libc::CLONE_THREAD as u64), 0)?;
    // Signals to itself, as `abort` sends.
    when(libc::SYS_kill, (0, Len::Dword), Op::Ne, own.into())?;
    when(libc::SYS_tgkill, (0, Len::Dword), Op::Ne, own.into())?;
    // Limits are read, and not set: a new one is given by its address.
    when(libc::SYS_prlimit64, (2, Len::Qword), Op::Ne, 0)?;
    // What types into the terminal, or has the kernel send signals to others.
    for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSPGRP, 0x8901, 0x8902] {
        when(libc::SYS_ioctl, (1, Len::Dword), Op::Eq, request)?;
    }
    for command in [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX] {
        when(libc::SYS_fcntl, (1, Len::Dword), Op::Eq, u64::from(command.cast_unsigned()))?;
    }
    // What Landlock lets through before Linux 6.2.
    let truncate = u64::from(libc::O_TRUNC.cast_unsigned());
    when(libc::SYS_openat, (2, Len::Dword), Op::MaskedEq(truncate), truncate)?;
    #[cfg(target_arch = "x86_64")]
    when(libc::SYS_open, (1, Len::Dword), Op::MaskedEq(truncate), truncate)?;
    let arch = env::consts::ARCH.try_into()?;
    let filter = |rules, errno: i32| -> Result<BpfProgram, seccompiler::Error> {
        let answer = SeccompAction::Errno(errno.cast_unsigned());
        Ok(SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()?)
    };
    // Its arguments are in memory, where no filter looks; the C library then does without it.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new()), (libc::SYS_openat2, Vec::new())]);
    Ok(vec![filter(refused, libc::EACCES)?, filter(unknown, libc::ENOSYS)?, x32()])
}
