//! A strict reader of XML 1.0 without a document type, so that what is written as XML is held against its grammar and not
//! against how it was written.

/// An element with what is in it.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) elements: Vec<Element>,
    pub(crate) text: String,
}

impl Element {
    /// An attribute's value.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The elements of a name within this one.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(move |element| element.name == name)
    }
}

/// The document's one element, or the place from where on it is no XML.
pub(crate) fn parse(text: &str) -> Result<Element, String> {
    let legal = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    if let Some(c) = text.chars().find(|c| !legal(*c)) {
        return Err(format!("{c:?} is not legal"));
    }
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let mut rest = text.strip_prefix(declaration).ok_or("no declaration")?;
    let root = element(&mut rest)?;
    if rest.trim().is_empty() { Ok(root) } else { Err(format!("more than one element: {rest}")) }
}

fn take<'a>(rest: &mut &'a str, literal: &str) -> Result<&'a str, String> {
    let taken = rest.get(..literal.len()).filter(|start| *start == literal);
    let taken = taken.ok_or_else(|| format!("no {literal:?} at {:?}", rest.chars().take(40).collect::<String>()))?;
    *rest = &rest[literal.len()..];
    Ok(taken)
}

fn until<'a>(rest: &mut &'a str, ends: &[char]) -> Result<&'a str, String> {
    let end = rest.find(ends).ok_or_else(|| format!("no end in {rest}"))?;
    let (taken, left) = rest.split_at(end);
    *rest = left;
    Ok(taken)
}

fn element(rest: &mut &str) -> Result<Element, String> {
    take(rest, "<")?;
    let mut found = Element { name: name(until(rest, &[' ', '>', '/'])?)?, ..Element::default() };
    while rest.starts_with(' ') {
        take(rest, " ")?;
        let key = name(until(rest, &['='])?)?;
        take(rest, "=\"")?;
        let value = decoded(until(rest, &['"', '<'])?)?;
        take(rest, "\"")?;
        if found.attribute(&key).is_some() {
            return Err(format!("{key} twice"));
        }
        found.attributes.push((key, value));
    }
    if take(rest, "/>").is_ok() {
        return Ok(found);
    }
    take(rest, ">")?;
    loop {
        found.text.push_str(&decoded(until(rest, &['<'])?)?);
        if take(rest, "</").is_ok() {
            let name = found.name.clone();
            take(rest, &name)?;
            take(rest, ">")?;
            return Ok(found);
        }
        found.elements.push(element(rest)?);
    }
}

fn name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if is_name { Ok(text.to_owned()) } else { Err(format!("{text:?} is no name")) }
}

fn decoded(text: &str) -> Result<String, String> {
    if text.contains("]]>") {
        return Err("a section ends that never began".to_owned());
    }
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        plain.push_str(&rest[..start]);
        let end = rest[start..].find(';').ok_or("a reference without an end")? + start;
        let entity = &rest[start + 1..end];
        let c = match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            number => {
                let code = number.strip_prefix('#').and_then(|code| code.parse().ok()).and_then(char::from_u32);
                code.ok_or_else(|| format!("&{number}; is unknown"))?
            }
        };
        plain.push(c);
        rest = &rest[end + 1..];
    }
    plain.push_str(rest);
    Ok(plain)
}
