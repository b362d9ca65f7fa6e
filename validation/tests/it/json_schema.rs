//! Limits of JSON Schemas: hostile schemas are undecided, and honest ones are decided.

use counterproof_validation::json_schema::{JsonSchema, More, SchemaOutcome};
use serde_json::{Map, Value, json};

const NEW: &str = "https://json-schema.org/draft/2020-12/schema";

fn check(schema: &Value, value: &Value) -> SchemaOutcome {
    JsonSchema::compile(schema).unwrap().check(value, 5)
}

#[track_caller]
fn is_undecided(schema: &Value, value: &Value, reason: &str) {
    match check(schema, value) {
        SchemaOutcome::Undecided(found) => assert!(found.contains(reason), "{found}"),
        other => panic!("{other:?}"),
    }
}

/// A schema whose parts `a0` to `a<levels>` each apply the next one with `apply`, and end in `last`.
fn chain(levels: usize, apply: impl Fn(Value) -> Value, last: Value) -> Value {
    let mut parts = Map::new();
    for level in 0..levels {
        parts.insert(format!("a{level}"), apply(json!({"$ref": format!("#/$defs/a{}", level + 1)})));
    }
    parts.insert(format!("a{levels}"), last);
    json!({"$schema": NEW, "$defs": parts, "$ref": "#/$defs/a0"})
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `chain` takes")]
fn twice(next: Value) -> Value {
    json!({"allOf": [next.clone(), next]})
}

#[test]
fn references_that_double_are_undecided_whatever_they_end_in() {
    for last in [json!(true), json!({}), json!({"type": "integer"}), json!({"minLength": 1})] {
        is_undecided(&chain(40, twice, last.clone()), &json!("x"), "10000 schemas at one place");
        is_undecided(&chain(14, twice, last), &json!("x"), "10000 schemas at one place");
    }
    for keyword in ["anyOf", "oneOf"] {
        let schema = chain(40, |next| json!({ keyword: [next.clone(), next] }), json!({"type": "integer"}));
        is_undecided(&schema, &json!("x"), "at one place");
    }
    let conditions = chain(40, |next| json!({"if": next.clone(), "then": next.clone(), "not": next}), json!(true));
    is_undecided(&conditions, &json!("x"), "at one place");
    let draft_7 =
        json!({"definitions": chain(40, twice, json!({"type": "integer"}))["$defs"], "$ref": "#/definitions/a0"});
    let draft_7 = serde_json::from_str(&draft_7.to_string().replace("$defs", "definitions")).unwrap();
    is_undecided(&draft_7, &json!("x"), "at one place");
}

#[test]
fn unevaluated_properties_follow_a_limited_number_of_references() {
    let with = |levels| {
        let mut schema = chain(levels, twice, json!({"properties": {"a": true}}));
        schema["unevaluatedProperties"] = json!(false);
        schema
    };
    assert_eq!(check(&with(5), &json!({"a": 1})), SchemaOutcome::Valid);
    assert!(matches!(check(&with(5), &json!({"b": 1})), SchemaOutcome::Invalid { .. }));
    is_undecided(&with(9), &json!({"a": 1}), "applies to more than 500 schemas");
}

#[test]
fn recursion_that_doubles_at_each_level_of_the_document_is_decided() {
    let schema = json!({
        "definitions": {"node": {"allOf": [
            {"properties": {"next": {"$ref": "#/definitions/node"}}},
            {"properties": {"next": {"$ref": "#/definitions/node"}}},
        ]}},
        "type": "object",
        "additionalProperties": {"$ref": "#/definitions/node"},
    });
    let mut value = json!("end");
    for _ in 0..60 {
        value = json!({ "next": value });
    }
    // The validator remembers results for objects, so this is decided.
    assert_eq!(check(&schema, &value), SchemaOutcome::Valid);
    let schema = json!({"$schema": NEW, "$defs": {"node": {
        "properties": {"next": {"$ref": "#/$defs/node", "minProperties": 2}},
        "anyOf": [{"properties": {"next": {"$ref": "#/$defs/node"}}}, {"properties": {"next": {"$ref": "#/$defs/node"}}}],
    }}, "$ref": "#/$defs/node"});
    match check(&schema, &value) {
        SchemaOutcome::Invalid { .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn cycles_and_chains_at_one_place_are_undecided() {
    let circle = json!({"$schema": NEW, "$defs": {
        "a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]},
    }, "$ref": "#/$defs/a"});
    is_undecided(&circle, &json!("x"), "leads back to itself");
    is_undecided(&chain(5_000, |next| json!({"allOf": [next]}), json!(true)), &json!("x"), "nest more than 200");
    // Each level of the document nests 100 schemas.
    let deep = chain(99, |next| json!({"allOf": [next]}), json!({"items": {"$ref": "#/$defs/a0"}}));
    let mut value = json!([]);
    for _ in 0..60 {
        value = json!([value]);
    }
    assert_eq!(check(&deep, &value), SchemaOutcome::Valid);
    for _ in 0..140 {
        value = json!([value]);
    }
    is_undecided(&deep, &value, "nested too deeply");
}

#[test]
fn references_into_data_are_undecided() {
    let hidden = json!({"$schema": NEW, "const": chain(40, twice, json!(true))["$defs"], "$ref": "#/const/a0"});
    is_undecided(&hidden, &json!("x"), "holds no schema");
    let map = json!({"$schema": NEW, "properties": {"allOf": {"type": "object"}}, "$ref": "#/properties"});
    is_undecided(&map, &json!("x"), "holds no schema");
}

#[test]
fn encoded_and_absolute_references_are_followed() {
    let text = chain(40, twice, json!(true)).to_string().replace("#/$defs/a", "#/%24defs/%61");
    is_undecided(&serde_json::from_str(&text).unwrap(), &json!("x"), "at one place");
    let mut absolute = chain(40, twice, json!(true));
    absolute["$id"] = json!("https://example.com/schema.json");
    for base in
        ["schema.json", "./schema.json", "https://example.com/schema.json", "https://example.com/x/../schema.json"]
    {
        let text = absolute.to_string().replace("\"#/$defs", &format!("\"{base}#/$defs"));
        is_undecided(&serde_json::from_str(&text).unwrap(), &json!("x"), "at one place");
    }
    let anchored = chain(40, twice, json!(true));
    let mut anchored: Value = serde_json::from_str(&anchored.to_string().replace("#/$defs/a", "#n")).unwrap();
    for (name, part) in anchored["$defs"].as_object_mut().unwrap() {
        if part.is_boolean() {
            *part = json!({});
        }
        part["$anchor"] = json!(name.replace('a', "n"));
    }
    is_undecided(&anchored, &json!("x"), "at one place");
}

#[test]
fn many_embedded_resources_are_undecided() {
    let parts: Map<_, _> = (0..40)
        .map(|part| {
            let next = json!({"properties": {"x": {"$ref": format!("r{}.json", part + 1)}, "y": {"$ref": format!("r{}.json", part + 2)}}});
            let mut next = next;
            next["$id"] = json!(format!("r{part}.json"));
            (format!("r{part}"), next)
        })
        .collect();
    is_undecided(
        &json!({"$schema": NEW, "$id": "https://example.com/", "$defs": parts}),
        &json!({}),
        "`$id` of its own",
    );
}

#[test]
fn a_schema_below_the_root_with_an_id_is_undecided_and_a_stray_id_is_not() {
    let with =
        |draft: &str, key: &str, id: &str| json!({"$schema": draft, "properties": {"a": {key: id, "type": "string"}}});
    let old = "http://json-schema.org/draft-04/schema#";
    for schema in [with(NEW, "$id", "a.json"), with(old, "id", "a.json")] {
        is_undecided(&schema, &json!({}), "`$id` of its own");
    }
    for schema in [with(NEW, "id", "a.json"), with("http://json-schema.org/draft-07/schema#", "$id", "#a")] {
        assert_eq!(check(&schema, &json!({"a": "x"})), SchemaOutcome::Valid);
    }
}

#[test]
fn large_keywords_cost_steps_for_each_value_up_to_the_limit() {
    let options: Vec<_> = (0..20_000).map(|number| json!(format!("option {number}"))).collect();
    let items = json!(vec!["none"; 20_000]);
    assert_eq!(check(&json!({"items": {"not": {"enum": options}}}), &items), SchemaOutcome::Valid);
    let rows: Vec<_> = (0..2_000).map(|row| json!([row, "a", "b"])).collect();
    is_undecided(
        &json!({"items": {"not": {"enum": rows}}}),
        &json!(vec![json!(["x", "a", "b"]); 10_000]),
        "50000000 steps",
    );
    let nested = json!({"definitions": {"n": {"uniqueItems": true, "items": {"$ref": "#/definitions/n"}}}, "$ref": "#/definitions/n"});
    let numbers: Vec<_> = (0..500_000).map(|number| json!(number)).collect();
    let mut value = json!(numbers);
    for _ in 0..120 {
        value = json!([value, 1]);
    }
    is_undecided(&nested, &value, "50000000 steps");
}

#[test]
fn expensive_regular_expressions_are_undecided() {
    let backtracks = json!({"pattern": "^(a|aa)+$(?!b)"});
    is_undecided(&backtracks, &json!(format!("{}c", "a".repeat(60))), "backtracks more than");
    let huge = json!({"pattern": "[ab]*a[ab]{50000}c"});
    is_undecided(&huge, &json!("ab".repeat(1_000_000)), "50000000 steps");
    let patterns: Vec<_> =
        (0..500).map(|number| json!({"pattern": format!("(a{{{}}}b){{100}}", 100 + number)})).collect();
    is_undecided(&json!({"anyOf": patterns}), &json!("x"), "regular expressions are too large");
    for pattern in ["((", "(a{1000}){10000}"] {
        let invalid = JsonSchema::compile(&json!({ "pattern": pattern })).unwrap_err();
        assert!(invalid.to_string().starts_with("not a valid JSON Schema"), "{invalid}");
    }
}

#[test]
fn remote_references_are_errors() {
    for reference in ["http://127.0.0.1:9/schema.json", "file:///etc/hostname", "https://json-schema.org/other"] {
        assert!(JsonSchema::compile(&json!({"$ref": reference})).is_err(), "{reference}");
    }
    let draft = json!({"$ref": "http://json-schema.org/draft-07/schema#"});
    assert_eq!(check(&draft, &json!({"type": "object"})), SchemaOutcome::Valid);
    assert!(matches!(check(&draft, &json!({"type": "nonsense"})), SchemaOutcome::Invalid { .. }));
}

#[test]
fn large_honest_schemas_and_documents_are_decided() {
    // Three thousand keywords, and a document of 10 MB.
    let blocks: Vec<_> = (0..30)
        .map(|kind| {
            let fields: Map<_, _> = (0..25)
                .map(|field| {
                    (format!("field{field}"), json!({"type": "string", "minLength": 1, "pattern": "^[a-z ]+$"}))
                })
                .collect();
            let mut block = json!({"type": "object", "required": ["kind", "children"], "properties": fields});
            block["properties"]["kind"] = json!({"const": format!("kind{kind}")});
            block["properties"]["children"] = json!({"type": "array", "items": {"$ref": "#/definitions/block"}});
            block
        })
        .collect();
    let schema = json!({"definitions": {"block": {"oneOf": blocks}}, "type": "object", "properties": {
        "blocks": {"type": "array", "items": {"$ref": "#/definitions/block"}},
    }});
    let mut block = json!({"kind": "kind29", "children": [], "field0": "some text that is long enough ".repeat(4)});
    for level in 0..8 {
        block = json!({"kind": format!("kind{level}"), "children": [block], "field3": "some more text ".repeat(6)});
    }
    let copies = 10_000_000 / block.to_string().len();
    let mut document = json!({"blocks": vec![block; copies]});
    assert!(document.to_string().len() > 9_900_000);
    assert_eq!(check(&schema, &document), SchemaOutcome::Valid);
    document["blocks"][copies / 2]["children"][0]["kind"] = json!("other");
    match check(&schema, &document) {
        SchemaOutcome::Invalid { .. } => {}
        other => panic!("{other:?}"),
    }
    let numbers =
        json!({"items": {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}});
    let mut rows: Vec<_> = (0..250_000).map(|id| json!({"id": id, "name": "some name or other"})).collect();
    rows[200_000] = json!({"name": "x"});
    match check(&numbers, &json!(rows)) {
        SchemaOutcome::Invalid { violations, more } => {
            assert_eq!((violations[0].pointer.as_str(), more), ("/200000", More::Counted(0)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn keywords_whose_value_is_an_object_without_schemas_compile_in_all_drafts() {
    let keywords = [
        ("dependentRequired", json!({"card": ["address"], "a": []})),
        ("dependencies", json!({"card": ["address"]})),
        ("$vocabulary", json!({"https://json-schema.org/draft/2020-12/vocab/core": true})),
        ("const", json!({"required": true})),
        ("default", json!({"required": true, "type": 5})),
        ("enum", json!([{"required": true}])),
        ("examples", json!([{"type": 5}])),
        ("x-owner", json!({"type": 5, "names": ["a"]})),
    ];
    for draft in ["", "draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"] {
        for (keyword, value) in &keywords {
            let mut schema = json!({ *keyword: value });
            match draft {
                "" => {}
                old if old.starts_with("draft-") => {
                    schema["$schema"] = json!(format!("http://json-schema.org/{old}/schema#"));
                }
                new => schema["$schema"] = json!(format!("https://json-schema.org/{new}/schema")),
            }
            let compiled = JsonSchema::compile(&schema);
            assert!(compiled.is_ok(), "{draft} {keyword}: {compiled:?}");
            let nested = JsonSchema::compile(&json!({"properties": {"x": schema}}));
            assert!(nested.is_ok(), "{draft} {keyword}: {nested:?}");
        }
    }
    let schema = json!({"$schema": NEW, "dependentRequired": {"card": ["address"]}});
    assert_eq!(check(&schema, &json!({"card": 1, "address": 2})), SchemaOutcome::Valid);
    assert!(matches!(check(&schema, &json!({"card": 1})), SchemaOutcome::Invalid { .. }));
}

#[test]
fn errors_quote_the_schema_as_it_is_written() {
    for (schema, quoted) in [
        (json!({"required": {}}), "{}"),
        (json!({"required": {"a": {"b": 1}}}), r#"{"a":{"b":1}}"#),
        (json!({"properties": {"a": {"type": [true]}}}), "[true]"),
    ] {
        let error = JsonSchema::compile(&schema).unwrap_err().to_string();
        assert!(error.contains(quoted) && !error.contains("counterproof"), "{error}");
    }
}

#[test]
fn braces_in_character_classes_are_no_repetitions() {
    let names = ["a", "b", "c", "d"].map(|name| (format!("[{name}{{18446744073709551615}}]"), json!(true)));
    let schema = json!({"patternProperties": Map::from_iter(names)});
    assert_eq!(check(&schema, &json!({"a": 1, "x": 2})), SchemaOutcome::Valid);
}

#[test]
fn patterns_with_comments_are_errors_or_undecided_since_a_comment_can_hide_a_repetition() {
    // Only some drafts demand that a pattern is valid in JavaScript, which has no comments.
    for draft in ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", NEW] {
        for pattern in ["(?x)# [\na{500}c # ]", "(?#[)a{500}(?#])", "(?x:# [\na{500}c # ]\n)"] {
            let text = (json!({"$schema": draft, "pattern": pattern}), json!("a"));
            let name = (json!({"$schema": draft, "patternProperties": {pattern: true}}), json!({"a": 1}));
            for (schema, value) in [text, name] {
                if JsonSchema::compile(&schema).is_ok() {
                    is_undecided(&schema, &value, "50000000 steps");
                }
            }
        }
    }
    let accepted = json!({"$schema": NEW, "pattern": "(?x)a # b"});
    is_undecided(&accepted, &json!("a"), "50000000 steps");
}

#[test]
fn long_names_of_members_cost_steps_for_each_pattern() {
    let schema = json!({"patternProperties": {"[ab]*a[ab]{50000}c": true}});
    assert_eq!(check(&schema, &json!({"ab": 1})), SchemaOutcome::Valid);
    is_undecided(&schema, &json!({"ab".repeat(250_000): 1}), "50000000 steps");
}

#[test]
fn many_regular_expressions_are_undecided() {
    let named: Map<_, _> = (0..10_001).map(|number| (format!("^a{number}$"), json!(true))).collect();
    let schema = json!({ "patternProperties": named });
    is_undecided(&schema, &json!({}), "more than 10000 regular expressions");
}
