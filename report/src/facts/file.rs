//! The files of facts: written from the rows of a comparison, and read for the history. Files of others, damaged files and files
//! of other versions are errors that name what is wrong.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::panic::catch_unwind;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::CaseId;
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability, WriteError};
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::columns::{self, COLUMNS, SCHEMA, Values};
use super::rows::{Facts, Row};
use crate::files::PageNames;
use crate::history::{CaseResult, CaseStatus, EvaluationSource, History, Night, SkippedPath};
use crate::view::word::{Label, Word};

/// The key of the version in the metadata of a file.
const SCHEMA_KEY: &str = "counterproof.facts";

/// The key of what is known of the whole comparison.
const COMPARISON_KEY: &str = "counterproof.comparison";

const EXTENSION: &str = "parquet";

/// A longer name does not fit into every file system.
const LONGEST_NAME: usize = 200;

/// A file with more rows is refused: 100,000 cases with 50 runs per side.
const MOST_ROWS: i64 = 10_000_000;

/// What the history needs in addition to the rows.
#[derive(Debug, Serialize, Deserialize)]
struct ComparisonRecord {
    /// The folder of the evaluation, relative to the folder of the file; absent if no relative path leads there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<Utf8PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(flatten)]
    night: Night,
}

/// An error of writing facts.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// The rows could not be encoded.
    #[error("failed to encode the facts of run `{run}`")]
    Encode { run: String, source: ParquetError },
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why a file of facts cannot be read. The caller adds the path.
#[derive(Debug, thiserror::Error)]
pub enum FactsReadError {
    /// The operating system refused it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is not Parquet, or damaged.
    #[error("not a readable Parquet file: {0}")]
    Parquet(#[from] ParquetError),
    /// Another program wrote it, or rewrote it without its metadata.
    #[error("not a file of `counterproof export facts`: its metadata has no valid `{0}`")]
    Foreign(&'static str),
    /// Another version of this program wrote it.
    #[error("it has the schema `{0}`, and this version reads {SCHEMA}")]
    Version(String),
    /// A column is missing or has another type.
    #[error("the column `{0}` is missing or has another type")]
    Column(&'static str),
    /// A value is missing or unknown.
    #[error("the column `{column}` has no valid value in row {row}")]
    Value { column: &'static str, row: usize },
    /// It is larger than any comparison.
    #[error("it has {0} rows, more than the limit of {MOST_ROWS}")]
    TooLarge(i64),
    /// It is in a history already.
    #[error("same comparison as in `{0}`")]
    Known(String),
}

impl Facts<'_> {
    /// The name of the file: the same comparison always has the same one.
    pub fn file_name(&self) -> String {
        let night = &self.comparison.night;
        let started = self.comparison.started.and_then(|started| jiff::Timestamp::from_microsecond(started).ok());
        let started = started.map_or_else(|| "undated".to_owned(), |time| time.strftime("%Y%m%dT%H%M%SZ").to_string());
        let name = format!("{started}--{}--{}.{EXTENSION}", night.new, night.baseline);
        if name.len() <= LONGEST_NAME {
            return name;
        }
        let digest = Sha256::digest(format!("{}\0{}", night.new, night.baseline));
        let mut short = format!("{started}--");
        for byte in &digest[..16] {
            let _ = write!(short, "{byte:02x}");
        }
        format!("{short}.{EXTENSION}")
    }

    /// Writes the facts into a folder, in place of those of an earlier export of the same comparison. `evaluation` is the folder of
    /// the evaluation, for links from a history; `None` if it does not stay.
    pub fn write(&self, folder: &Utf8Path, evaluation: Option<&Utf8Path>) -> Result<Utf8PathBuf, FactsError> {
        let link = folder.canonicalize_utf8().ok().zip(evaluation.and_then(|folder| folder.canonicalize_utf8().ok()));
        let link = link.and_then(|(from, to)| counterproof_store::relative_path(&from, &to));
        let bytes = self
            .encode(link)
            .map_err(|source| FactsError::Encode { run: self.comparison.night.new.clone(), source })?;
        let path = folder.join(self.file_name());
        write::write(&path, &bytes, Durability::Synced)?;
        Ok(path)
    }

    pub(super) fn encode(&self, folder: Option<Utf8PathBuf>) -> Result<Vec<u8>, ParquetError> {
        let rows = self.rows();
        let model = self.model().map(str::to_owned);
        let record = ComparisonRecord { folder, model, night: self.comparison.night.clone() };
        let record = serde_json::to_string(&record).map_err(|error| ParquetError::External(Box::new(error)))?;
        let metadata = [(SCHEMA_KEY, SCHEMA.to_owned()), (COMPARISON_KEY, record)];
        let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("counterproof ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(metadata));
        let schema = Arc::new(parse_message_type(&columns::schema())?);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
        let mut group = writer.next_row_group()?;
        for column in &COLUMNS {
            let Some(mut chunk) = group.next_column()? else { break };
            match column.values {
                Values::Text(of) => write_nullable::<ByteArrayType>(chunk.typed(), &rows, |row| of(row).map(bytes))?,
                Values::Texts(of) => write_lists(chunk.typed(), &rows, of)?,
                Values::Boolean(of) => write_nullable::<BoolType>(chunk.typed(), &rows, of)?,
                Values::Integer(of) | Values::Time(of) => write_nullable::<Int64Type>(chunk.typed(), &rows, of)?,
                Values::Number(of) => write_nullable::<DoubleType>(chunk.typed(), &rows, of)?,
                Values::Date(of) => write_nullable::<Int32Type>(chunk.typed(), &rows, of)?,
            }
            chunk.close()?;
        }
        group.close()?;
        writer.into_inner()
    }
}

fn bytes(text: &str) -> ByteArray {
    text.into()
}

fn write_nullable<T: DataType>(
    column: &mut ColumnWriterImpl<'_, T>,
    rows: &[Row<'_>],
    of: impl Fn(&Row<'_>) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = rows.iter().map(of).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.write_batch(&values, Some(&levels), None).map(|_| ())
}

fn write_lists(
    column: &mut ColumnWriterImpl<'_, ByteArrayType>,
    rows: &[Row<'_>],
    of: for<'r> fn(&'r Row<'_>) -> Vec<&'r str>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let list = of(row);
        // An empty list is one entry without a value.
        levels.extend(std::iter::repeat_n(i16::from(!list.is_empty()), list.len().max(1)));
        // A value at level 0 begins a row.
        repetitions.extend((0..list.len().max(1)).map(|index| i16::from(index > 0)));
        values.extend(list.into_iter().map(bytes));
    }
    column.write_batch(&values, Some(&levels), Some(&repetitions)).map(|_| ())
}

/// A file of facts, read.
#[derive(Debug)]
pub struct FactsFile {
    path: Utf8PathBuf,
    record: ComparisonRecord,
    /// In the order of the evaluation, with their ranks.
    cases: Vec<(i64, CaseResult)>,
}

impl FactsFile {
    /// Reads what a history needs.
    pub fn read(path: &Utf8Path) -> Result<Self, FactsReadError> {
        // The decoder panics on some damaged pages. Its state is local to the call.
        let read = catch_unwind(|| Self::read_whole(path));
        read.unwrap_or_else(|_| Err(ParquetError::General("a page is damaged".to_owned()).into()))
    }

    fn read_whole(path: &Utf8Path) -> Result<Self, FactsReadError> {
        let (file, length) = read_file::open(path)?;
        let reader = SerializedFileReader::new(file)?;
        let record = record(&reader)?;
        check_places(&reader, length)?;
        // Of the groups, whose numbers are those that the decoder believes.
        let groups = reader.metadata().row_groups().iter().map(RowGroupMetaData::num_rows);
        let rows = groups.fold(0_i64, |sum, rows| if rows < 0 { i64::MAX } else { sum.saturating_add(rows) });
        if rows > MOST_ROWS {
            return Err(FactsReadError::TooLarge(rows));
        }
        let mut cases = Vec::new();
        let mut seen = HashSet::new();
        for index in 0..reader.num_row_groups() {
            read_cases(&*reader.get_row_group(index)?, &mut seen, &mut cases)?;
        }
        Ok(Self { path: path.to_owned(), record, cases })
    }

    /// The folder of the evaluation, if it is still there.
    pub fn evaluation(&self) -> Option<Utf8PathBuf> {
        let folder = self.path.parent()?.join(self.record.folder.as_ref()?);
        folder.is_dir().then_some(folder)
    }

    /// Adds the night to a history. `source` is that of the evaluation, where it was found.
    pub fn add_to(self, history: &mut History, source: Option<EvaluationSource>) -> Result<(), FactsReadError> {
        let Self { path, record, mut cases } = self;
        let found = source.unwrap_or_default();
        let source = EvaluationSource { folder: path.into_string(), model: record.model, ..found };
        let names = PageNames::new(cases.iter().map(|(_, case)| case.id.clone()).collect());
        cases.sort_by_key(|(rank, _)| *rank);
        let cases = cases.into_iter().map(|(_, case)| case).collect();
        let added = history.add_night(record.night, cases, &names, source);
        added.map_err(|known| FactsReadError::Known(known.folder))
    }
}

/// Returns what is known of the whole comparison. Checks that this program wrote the file, and its version.
fn record(reader: &SerializedFileReader<File>) -> Result<ComparisonRecord, FactsReadError> {
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let value = |key: &str| metadata?.iter().find(|entry| entry.key == key)?.value.as_deref();
    let schema = value(SCHEMA_KEY).ok_or(FactsReadError::Foreign(SCHEMA_KEY))?;
    if schema != SCHEMA {
        return Err(FactsReadError::Version(schema.to_owned()));
    }
    let record = value(COMPARISON_KEY).and_then(|text| serde_json::from_str(text).ok());
    record.ok_or(FactsReadError::Foreign(COMPARISON_KEY))
}

/// Checks the places of all columns, which the decoder takes as they are.
fn check_places(reader: &SerializedFileReader<File>, length: u64) -> Result<(), ParquetError> {
    for column in reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = start.checked_add(column.compressed_size()).and_then(|end| u64::try_from(end).ok());
        let is_inside = start >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end <= length);
        if !is_inside {
            return Err(ParquetError::General(format!("the column `{}` is outside of the file", column.column_path())));
        }
    }
    Ok(())
}

fn read_cases(
    group: &dyn RowGroupReader,
    seen: &mut HashSet<CaseId>,
    cases: &mut Vec<(i64, CaseResult)>,
) -> Result<(), FactsReadError> {
    let ids = read_column::<ByteArrayType>(group, "case_id")?;
    let ranks = read_column::<Int64Type>(group, "rank")?;
    let results = read_column::<ByteArrayType>(group, "result")?;
    let unconfirmed = read_column::<BoolType>(group, "unconfirmed")?;
    let failing = read_column::<BoolType>(group, "failing")?;
    let reasons = read_column::<ByteArrayType>(group, "reason")?;
    for (row, id) in ids.iter().enumerate() {
        let invalid = |column| FactsReadError::Value { column, row };
        // A case has a row for each side and run.
        let is_first = row == 0 || ids[row - 1] != *id;
        if !is_first {
            continue;
        }
        let id: Option<CaseId> = id.as_ref().and_then(|id| id.as_utf8().ok()?.parse().ok());
        let id = id.ok_or_else(|| invalid("case_id"))?;
        if !seen.insert(id.clone()) {
            continue;
        }
        let text = results[row].as_ref().and_then(|text| text.as_utf8().ok());
        let word = Word::ALL.into_iter().find(|word| text == Some(word.as_str())).ok_or_else(|| invalid("result"))?;
        let is_unconfirmed = unconfirmed[row].ok_or_else(|| invalid("unconfirmed"))?;
        let status = failing[row].map(|failing| if failing { CaseStatus::Failing } else { CaseStatus::Passing });
        let reason = reasons[row].as_ref().and_then(|reason| reason.as_utf8().ok()).unwrap_or_default().to_owned();
        let result = CaseResult { id, label: Label { word, is_unconfirmed }, status, reason };
        cases.push((ranks[row].ok_or_else(|| invalid("rank"))?, result));
    }
    Ok(())
}

/// Reads a column that may have no value in a row.
fn read_column<T: DataType>(
    group: &dyn RowGroupReader,
    name: &'static str,
) -> Result<Vec<Option<T::T>>, FactsReadError> {
    let schema = group.metadata().schema_descr();
    let fits = |index: &usize| {
        let column = schema.column(*index);
        let is_named = column.path().parts() == [name];
        is_named && column.physical_type() == T::get_physical_type() && column.max_def_level() == 1
    };
    let index = (0..schema.num_columns()).find(fits).ok_or(FactsReadError::Column(name))?;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows || levels.len() != rows {
        return Err(ParquetError::EOF(format!("column `{name}` has {read} of {rows} rows")).into());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

/// Returns the files of facts in a folder, by name. Other files are ignored.
pub fn find(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, SkippedPath> {
    let unread = |error: io::Error| SkippedPath { path: folder.to_owned(), reason: error.to_string() };
    let mut found = Vec::new();
    for entry in folder.read_dir_utf8().map_err(unread)? {
        let entry = entry.map_err(unread)?;
        // Unfinished files of this program start with a dot.
        if entry.path().extension() == Some(EXTENSION) && !entry.file_name().starts_with('.') {
            found.push(entry.into_path());
        }
    }
    found.sort_unstable();
    Ok(found)
}
