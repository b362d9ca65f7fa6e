//! Values of columns as values of PostgreSQL.

use std::error::Error;

use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::tables::{Cell, Row};

impl ToSql for Cell<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null => Ok(IsNull::Yes),
            Cell::Integer(number) => number.to_sql(kind, out),
            Cell::Text(text) => (&**text).to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::INT8)
    }

    to_sql_checked!();
}

/// Reads a row. Columns of other types than text and 64-bit numbers have no value.
pub(super) fn row(row: &postgres::Row) -> Result<Row<'static>, postgres::Error> {
    let cell = |(number, column): (usize, &postgres::Column)| match *column.type_() {
        Type::TEXT => row.try_get::<_, Option<String>>(number).map(Cell::from),
        Type::INT8 => row.try_get::<_, Option<i64>>(number).map(Cell::from),
        _ => Ok(Cell::Null),
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>().map(Row::from_cells)
}
