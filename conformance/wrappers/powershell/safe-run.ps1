#!/usr/bin/env pwsh
# Finds the safe-run program and runs it. Contract: M0-v0.1.0
#
# Passes arguments, environment and exit code through unchanged.
# PowerShell cannot replace itself with another program, so it starts safe-run and returns its exit code.
# Uses the first of these that exists:
#   1. $env:SAFE_RUN_BIN, without a check
#   2. <root>/rust/target/release/safe-run, <root>/target/release/safe-run
#   3. <root>/dist/<linux|macos|windows>/<x86_64|aarch64>/safe-run
#   4. safe-run on the PATH
# <root> is the nearest folder above this file that contains .git or RFC-Shared-Agent-Scaffolding-v0.1.0.md.
# Exit codes: 127 if none exists; 126 if the one in SAFE_RUN_BIN cannot be executed.

$ErrorActionPreference = 'Stop'

function Invoke-Tool([string] $Program, [object[]] $Words) {
    try {
        & $Program @Words
        exit $LASTEXITCODE
    } catch {
        [Console]::Error.WriteLine("ERROR: ${Program}: $($_.Exception.Message)")
        if (Test-Path -LiteralPath $Program) { exit 126 } else { exit 127 }
    }
}

if ($env:SAFE_RUN_BIN) {
    Invoke-Tool $env:SAFE_RUN_BIN $args
}

$root = $PSScriptRoot
while (-not (Test-Path -LiteralPath (Join-Path $root '.git')) -and
       -not (Test-Path -LiteralPath (Join-Path $root 'RFC-Shared-Agent-Scaffolding-v0.1.0.md')) -and
       (Split-Path -Parent $root)) {
    $root = Split-Path -Parent $root
}

$isWindowsHere = ($PSVersionTable.PSEdition -eq 'Desktop') -or $IsWindows
$system = if ($isWindowsHere) { 'windows' } elseif ($IsMacOS) { 'macos' } else { 'linux' }
$machine = switch ([System.Runtime.InteropServices.RuntimeInformation]::OSArchitecture.ToString()) {
    'X64' { 'x86_64' }
    'Arm64' { 'aarch64' }
    default { $_.ToLowerInvariant() }
}
$name = if ($isWindowsHere) { 'safe-run.exe' } else { 'safe-run' }

$places = @(
    [IO.Path]::Combine($root, 'rust', 'target', 'release', $name),
    [IO.Path]::Combine($root, 'target', 'release', $name),
    [IO.Path]::Combine($root, 'dist', $system, $machine, $name)
)
foreach ($place in $places) {
    if (Test-Path -LiteralPath $place -PathType Leaf) { Invoke-Tool $place $args }
}
$found = Get-Command $name -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
if ($found) { Invoke-Tool $found.Source $args }

[Console]::Error.WriteLine('ERROR: Rust canonical tool not found.')
[Console]::Error.WriteLine('Searched, in this order:')
[Console]::Error.WriteLine('  1. SAFE_RUN_BIN (not set)')
$number = 2
foreach ($place in $places) {
    [Console]::Error.WriteLine("  $number. $place")
    $number++
}
[Console]::Error.WriteLine("  $number. safe-run on the PATH")
[Console]::Error.WriteLine("Hint: build it with 'cargo build --release', or set SAFE_RUN_BIN to where it is")
exit 127
