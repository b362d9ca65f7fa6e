//! The clients whose configurations are known, and where these are.

use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use counterproof_ledger::event::AgentClient;

use super::config_tree::Language;

/// A client: a program with an agent that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    VsCode,
    Gemini,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the client is unknown; known clients: claude-code, claude-desktop, codex, cursor, vscode, gemini")]
pub struct UnknownClient;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

impl Client {
    pub const ALL: [Client; 6] =
        [Self::ClaudeCode, Self::ClaudeDesktop, Self::Codex, Self::Cursor, Self::VsCode, Self::Gemini];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Gemini => "gemini",
        }
    }

    pub(super) const fn agent_client(self) -> AgentClient {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop => AgentClient::Claude,
            Self::Codex => AgentClient::Codex,
            Self::Cursor | Self::VsCode | Self::Gemini => AgentClient::Custom,
        }
    }

    const fn variable(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop => Some("SUBLUMINAL_CLAUDE_CONFIG"),
            Self::Codex => Some("SUBLUMINAL_CODEX_CONFIG"),
            Self::Cursor | Self::VsCode | Self::Gemini => None,
        }
    }

    pub const fn servers_key(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Gemini => "mcpServers",
        }
    }

    /// The configuration of a project, relative to its folder. `None` if the client has none.
    pub const fn project_file(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some(".mcp.json"),
            Self::ClaudeDesktop => None,
            Self::Codex => Some(".codex/config.toml"),
            Self::Cursor => Some(".cursor/mcp.json"),
            Self::VsCode => Some(".vscode/mcp.json"),
            Self::Gemini => Some(".gemini/settings.json"),
        }
    }

    /// The configuration of the user. Returns `None` if the home folder is unknown.
    pub fn user_file(self, platform: Platform, lookup: impl Fn(&str) -> Option<String>) -> Option<Utf8PathBuf> {
        let set = |name| lookup(name).filter(|value: &String| !value.is_empty()).map(Utf8PathBuf::from);
        if let Some(path) = self.variable().and_then(set) {
            return Some(path);
        }
        let home = || set(if platform == Platform::Windows { "USERPROFILE" } else { "HOME" });
        // The folder of the settings of desktop programs.
        let settings = || match platform {
            Platform::Linux => {
                set("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| Some(home()?.join(".config")))
            }
            Platform::MacOs => Some(home()?.join("Library/Application Support")),
            Platform::Windows => set("APPDATA"),
        };
        match self {
            Self::ClaudeCode => Some(set("CLAUDE_CONFIG_DIR").or_else(home)?.join(".claude.json")),
            Self::ClaudeDesktop => Some(settings()?.join("Claude/claude_desktop_config.json")),
            Self::Codex => Some(set("CODEX_HOME").or_else(|| Some(home()?.join(".codex")))?.join("config.toml")),
            Self::Cursor => Some(home()?.join(".cursor/mcp.json")),
            Self::VsCode => Some(settings()?.join("Code/User/mcp.json")),
            Self::Gemini => Some(home()?.join(".gemini/settings.json")),
        }
    }
}

pub(super) fn language(path: &camino::Utf8Path) -> Language {
    if path.extension().is_some_and(|it| it.eq_ignore_ascii_case("toml")) { Language::Toml } else { Language::Json }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Client {
    type Err = UnknownClient;

    fn from_str(text: &str) -> Result<Self, UnknownClient> {
        Self::ALL.into_iter().find(|client| client.name() == text).ok_or(UnknownClient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_file_on_every_system() {
        let lookup = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "USERPROFILE" => Some("C:/Users/ada".to_owned()),
            "APPDATA" => Some("C:/Users/ada/AppData/Roaming".to_owned()),
            _ => None,
        };
        let mut lines = Vec::new();
        for platform in [Platform::Linux, Platform::MacOs, Platform::Windows] {
            for client in Client::ALL {
                lines.push(format!("{client}: {}", client.user_file(platform, lookup).unwrap()));
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @r#"
        claude-code: /home/ada/.claude.json
        claude-desktop: /home/ada/.config/Claude/claude_desktop_config.json
        codex: /home/ada/.codex/config.toml
        cursor: /home/ada/.cursor/mcp.json
        vscode: /home/ada/.config/Code/User/mcp.json
        gemini: /home/ada/.gemini/settings.json
        claude-code: /home/ada/.claude.json
        claude-desktop: /home/ada/Library/Application Support/Claude/claude_desktop_config.json
        codex: /home/ada/.codex/config.toml
        cursor: /home/ada/.cursor/mcp.json
        vscode: /home/ada/Library/Application Support/Code/User/mcp.json
        gemini: /home/ada/.gemini/settings.json
        claude-code: C:/Users/ada/.claude.json
        claude-desktop: C:/Users/ada/AppData/Roaming/Claude/claude_desktop_config.json
        codex: C:/Users/ada/.codex/config.toml
        cursor: C:/Users/ada/.cursor/mcp.json
        vscode: C:/Users/ada/AppData/Roaming/Code/User/mcp.json
        gemini: C:/Users/ada/.gemini/settings.json
        "#);
        assert_eq!(Client::Cursor.user_file(Platform::Linux, |_| None), None);
    }

    #[test]
    fn variables_name_other_files() {
        let file = |client: Client, name: &str, value: &str| {
            let lookup = |it: &str| {
                if it == name { Some(value.to_owned()) } else { Some("/home".to_owned()).filter(|_| it == "HOME") }
            };
            client.user_file(Platform::Linux, lookup).unwrap().into_string()
        };
        assert_eq!(file(Client::ClaudeCode, "SUBLUMINAL_CLAUDE_CONFIG", "/c.json"), "/c.json");
        assert_eq!(file(Client::ClaudeDesktop, "SUBLUMINAL_CLAUDE_CONFIG", "/c.json"), "/c.json");
        assert_eq!(file(Client::Codex, "SUBLUMINAL_CODEX_CONFIG", "/c.toml"), "/c.toml");
        assert_eq!(file(Client::Codex, "CODEX_HOME", "/codex"), "/codex/config.toml");
        assert_eq!(file(Client::ClaudeCode, "CLAUDE_CONFIG_DIR", "/claude"), "/claude/.claude.json");
        assert_eq!(file(Client::VsCode, "XDG_CONFIG_HOME", "/xdg"), "/xdg/Code/User/mcp.json");
        assert_eq!(file(Client::VsCode, "XDG_CONFIG_HOME", "xdg"), "/home/.config/Code/User/mcp.json");
    }

    #[test]
    fn names_are_parsed() {
        for client in Client::ALL {
            assert_eq!(client.name().parse(), Ok(client));
        }
        assert_eq!("claude".parse::<Client>(), Err(UnknownClient));
    }
}
