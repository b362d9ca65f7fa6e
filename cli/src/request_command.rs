//! A kept request as a command line. Values of headers are not known, so a variable of the shell stands for each.

use counterproof_runner::SavedRequest;

/// The pipe that asks a program, which is given as its words.
pub(crate) fn pipe(request: &SavedRequest, words: &[String]) -> String {
    format!("printf '%s\\n' {} | {}", shell_words::quote(&request.body.to_string()), shell_words::join(words))
}

/// The `curl` command that sends the request to a server.
pub(crate) fn command(request: &SavedRequest) -> String {
    let body = request.body.to_string();
    let body = shell_words::quote(&body);
    let mut lines = vec![
        format!("curl --request POST {}", shell_words::quote(&request.url)),
        "  --header 'content-type: application/json'".to_owned(),
    ];
    // Names of headers hold no character that means anything between double quotes but the backtick and the dollar sign.
    let plain = |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    for name in request.headers.iter().filter(plain) {
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
    fn a_request_is_quoted_for_the_shell_and_secrets_are_left_to_the_caller() {
        let expected = "curl --request POST 'http://h/run-case?a&b' \\\n  --header 'content-type: application/json' \\\n  \
                        --header \"authorization: $AUTHORIZATION\" \\\n  --data-raw '{\"user\":\"it'\\''s $HOME\"}'";
        assert_eq!(command(&request("http://h/run-case?a&b")), expected);
        let words = ["my agent", "--fast", "$KEY"].map(str::to_owned);
        let expected = "printf '%s\\n' '{\"user\":\"it'\\''s $HOME\"}' | 'my agent' --fast '$KEY'";
        assert_eq!(pipe(&request("cmd:my agent"), &words), expected);
    }
}
