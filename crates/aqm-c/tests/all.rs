//! All tests of this folder in one program: each more would be linked, and compile what it shares, again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod header;
mod replay;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The static library, which Cargo puts beside this program.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    program.with_file_name("libbluewater_aqm.a")
}

/// Compiles `source` as `name`, as the page says, with every warning.
fn compile(source: &Path, name: &str) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = Command::new("cc")
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"])
        .args([&program, source])
        .arg("-I")
        .arg(root().join("include"))
        .arg(library())
        .args(["-lpthread", "-lm", "-ldl"])
        .output()
        .expect("a C compiler, `cc`");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// As [`run`], in valgrind if there is one: a leak is an error.
fn checked(program: &Path, input: &str) -> String {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return run(Command::new(program), input);
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--leak-check=full", "--show-leak-kinds=all"]);
    command.args(["--errors-for-leak-kinds=all", "--error-exitcode=9"]).arg(program);
    run(command, input)
}

/// What a program prints that reads `input`.
fn run(mut command: Command, input: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let done = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().expect("it ends")
    });
    assert!(done.status.success(), "{}\n{}", done.status, String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}
