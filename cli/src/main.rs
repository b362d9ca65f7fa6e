//! The `counterproof` program: arguments in, exit code out.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// JSON values are many small allocations from all cores, where the system's allocator spends a third of the user time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // The program also starts itself as the supervisor of agent programs, and as the launcher of a command in a sandbox. In these
    // roles it must not parse arguments.
    counterproof_workflow::tools::enter().unwrap_or_else(|| counterproof::run(std::env::args_os()).into())
}
