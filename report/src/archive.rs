//! A report as one zip archive, for hosts that keep single files.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::folder::ReportError;

/// Writes the files of a report into an archive. They are below one folder with the name of the report.
pub(crate) fn write(report: &Utf8Path, archive: &Utf8Path) -> Result<(), ReportError> {
    let failed = |source: io::Error| ReportError::Folder { path: archive.to_owned(), source };
    let name = report.canonicalize_utf8().map_err(failed)?.file_name().unwrap_or("report").to_owned();
    let mut writer = ZipWriter::new_stream(AtomicFile::create(archive)?);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for path in files(report).map_err(failed)? {
        let within = path.strip_prefix(report).unwrap_or(&path);
        writer.start_file(format!("{name}/{within}"), options).map_err(|error| failed(error.into()))?;
        let (mut content, _) = read_file::open(&path).map_err(failed)?;
        io::copy(&mut content, &mut writer).map_err(failed)?;
    }
    let file = writer.finish().map_err(|error| failed(error.into()))?.into_inner();
    Ok(file.commit(Durability::Synced)?)
}

/// The files below a folder, sorted. Links are not followed.
fn files(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(self::files(entry.path())?);
        } else if kind.is_file() && !entry.file_name().starts_with('.') {
            files.push(entry.path().to_owned());
        }
    }
    files.sort();
    Ok(files)
}
