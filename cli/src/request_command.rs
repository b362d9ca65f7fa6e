//! A recorded request as a shell command. Header values are not recorded, so a shell variable takes the place of each.

use counterproof_runner::SavedRequest;

use crate::shell::quoted;

/// Returns the pipeline that sends the request to an agent program, given as its words.
pub(crate) fn pipeline(request: &SavedRequest, words: &[String]) -> String {
    format!("printf '%s\\n' {} | {}", quoted(&request.body.to_string()), shell_words::join(words))
}

/// Returns the `curl` command that sends the request to a server.
pub(crate) fn curl_command(request: &SavedRequest) -> String {
    let body = request.body.to_string();
    let body = quoted(&body);
    let mut lines = vec![
        // `--url`, because a URL from a file may look like an option. Without `--globoff`, curl expands brackets and braces in it.
        format!("curl --request POST --globoff --url {}", quoted(&request.url)),
        "  --header 'content-type: application/json'".to_owned(),
    ];
    // The header is double-quoted so that the shell expands the variable. Names with other characters, such as the backtick,
    // would need escaping there and make no variable name.
    let is_plain =
        |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    for name in request.headers.iter().filter(is_plain) {
        let variable = name.to_ascii_uppercase().replace('-', "_");
        lines.push(format!("  --header \"{name}: ${variable}\""));
    }
    lines.push(format!("  --data-raw {body}"));
    lines.join(" \\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(url: &str) -> SavedRequest {
        SavedRequest {
            protocol: "native".to_owned(),
            url: url.to_owned(),
            headers: vec!["authorization".to_owned(), "x-`id`".to_owned()],
            body: json!({"user": "it's $HOME"}),
            masked: false,
        }
    }

    #[test]
    fn requests_are_quoted_for_the_shell_and_header_values_are_variables() {
        let expected = "curl --request POST --globoff --url 'http://h/run-case?a&b' \\\n  --header 'content-type: application/json' \\\n  \
                        --header \"authorization: $AUTHORIZATION\" \\\n  --data-raw '{\"user\":\"it'\\''s $HOME\"}'";
        assert_eq!(curl_command(&request("http://h/run-case?a&b")), expected);
        assert!(
            curl_command(&request("-o/etc/passwd")).starts_with("curl --request POST --globoff --url -o/etc/passwd ")
        );
        let words = ["my agent", "--fast", "$KEY"].map(str::to_owned);
        let expected = "printf '%s\\n' '{\"user\":\"it'\\''s $HOME\"}' | 'my agent' --fast '$KEY'";
        assert_eq!(pipeline(&request("cmd:my agent"), &words), expected);
    }
}
