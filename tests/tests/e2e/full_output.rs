//! A standard output that cannot be written, such as on a full disk, is an error that names it.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;

use counterproof_tests::Sandbox;

#[test]
fn output_on_a_full_disk_is_an_error_that_names_standard_output() {
    let sandbox = Sandbox::new().with_file("good.json", "{\"schema_version\": \"failure-meta.v1\"}");
    for arguments in
        [&["--help"][..], &["--version"], &["run", "--help"], &["schema", "case.v1"], &["validate", "good.json"]]
    {
        #[expect(clippy::disallowed_methods, reason = "a device, which a crash cannot leave half-written")]
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {stderr}");
        let expected = "error: cannot write to standard output\n  caused by: No space left on device (os error 28)\n";
        assert_eq!(stderr, expected, "{arguments:?}");
    }
}
