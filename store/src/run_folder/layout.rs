//! Names within a run folder.

/// The run document.
pub const RUN_FILE: &str = "run.json";

/// The evaluator's document, in a run folder and in a report.
pub const EVALUATION_FILE: &str = "evaluation.json";

/// The labels of an accepted baseline. A case may have this name: the `schema_version` tells the two apart.
pub const LABELS_FILE: &str = "labels.json";

/// The folder of the assets.
pub const ASSETS_FOLDER: &str = "assets";

pub const MANIFEST_FILE: &str = "assets/manifest.json";

/// Extensions of assets: no browser executes such a file when it is opened from disk.
pub const SAFE_EXTENSIONS: [&str; 3] = ["json", "txt", "bin"];
