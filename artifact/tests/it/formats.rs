//! `docs/formats.md` covers every kind of document.

use counterproof_artifact::schema::Kind;

#[test]
fn the_manual_on_formats_names_every_kind_of_document() {
    let formats = include_str!("../../../docs/formats.md");
    for kind in Kind::ALL {
        assert!(formats.contains(&format!("`{kind}`")), "{kind}");
    }
}
