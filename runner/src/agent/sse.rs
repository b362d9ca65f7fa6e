//! Server-sent events in a complete body.

/// Returns the data of each event, without the final `[DONE]`. Bytes that are not UTF-8 are replaced.
pub(crate) fn data_of_events(body: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(body);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut data) = (Vec::new(), None::<String>);
    // A body can end without the empty line that ends an event.
    for line in text.split('\n').chain([""]) {
        if line.is_empty() {
            events.extend(data.take());
        } else if let Some(value) = line.strip_prefix("data") {
            let value = match value.strip_prefix(':') {
                Some(value) => value.strip_prefix(' ').unwrap_or(value),
                None if value.is_empty() => "",
                None => continue,
            };
            match &mut data {
                Some(data) => data.extend(["\n", value]),
                None => data = Some(value.to_owned()),
            }
        }
    }
    events.retain(|data| data.trim() != "[DONE]");
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_at_empty_lines_and_at_the_end() {
        let body = b"\xEF\xBB\xBFevent: x\r\ndata: a\r\ndata:b\r\n\r\n: comment\n\ndata: \xC3\xA9\n\ndatum: z\n\ndata: [DONE]\n\ndata: last";
        assert_eq!(data_of_events(body), ["a\nb", "é", "last"]);
        assert_eq!(data_of_events(b""), Vec::<String>::new());
    }
}
