//! The live page: what the links do, and the way to change them, in a browser.
//!
//! Its address gives the rights of `ctl`, so the path holds a secret, drawn at each start, and requests
//! without it get no answer and change nothing. Requests for a name that is no address of a machine are
//! refused (a page elsewhere could give its own name this address: DNS rebinding), as are changes that a page
//! from elsewhere asks for. The page is these files and loads nothing else.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use aqm::CATALOG;
use aqm::param::Kind;
use serde_json::{Value, json};

use super::asking::{Asking, Latest};
use super::http::{self, Answer, Wish, is_address};
use super::request::{self, Request};
use crate::options::Change;
use crate::trouble::{Trouble, say};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Nothing from elsewhere, into no frame, kept nowhere.
const HEADERS: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; \
    style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cache-Control: no-store\r\n";

const JSON: &str = "application/json";

/// Bytes of the secret.
const SECRET: usize = 16;

/// Where the page is: `PORT` of the loopback address, or `ADDRESS:PORT`.
///
/// # Errors
/// What is allowed.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    port.parse().map(loopback).or_else(|_| text.parse()).map_err(|_| {
        "allowed: PORT, which is at 127.0.0.1, or ADDRESS:PORT with an IP address; port 0 is a \
         free one"
            .into()
    })
}

/// A port that waits for browsers.
#[derive(Debug)]
pub struct Web {
    listener: TcpListener,
    /// `/SECRET/`.
    root: String,
}

impl Web {
    /// Opens it.
    ///
    /// # Errors
    /// When it is taken.
    pub fn bind(at: SocketAddr) -> Result<Self, Trouble> {
        let listener = TcpListener::bind(at)
            .map_err(|e| Trouble::new(format!("--web {at}: {e}"), "--web 0 chooses a free port"))?;
        if !at.ip().is_loopback() {
            say(format!(
                "warning: --web {at}: whoever sees the page's address on its way, which is not \
                 encrypted, can change the link\nhint: --web {}, and ssh -L",
                at.port()
            ));
        }
        let mut secret = [0; SECRET];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut secret))
            .map_err(|e| Trouble::system("drawing the page's secret", e))?;
        let mut root = String::from("/");
        secret.iter().for_each(|byte| _ = write!(root, "{byte:02x}"));
        root.push('/');
        Ok(Self { listener, root })
    }

    /// Goes on at the `listener` of another process, under its `root`.
    pub(crate) fn taken_over(listener: OwnedFd, root: &str) -> Self {
        Self { listener: listener.into(), root: root.into() }
    }

    /// What it needs for that.
    pub(crate) fn parts(&self) -> (BorrowedFd<'_>, &str) {
        (self.listener.as_fd(), &self.root)
    }

    /// Where to look.
    pub fn url(&self) -> String {
        let at = self.listener.local_addr();
        at.map_or_else(|_| String::new(), |at| format!("http://{at}{}", self.root))
    }

    /// Answers in a thread of its own; `about` is what does not change.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn serve(self, about: &Value, mut asking: Asking) -> Result<(), Trouble> {
        let bytes = |state: Value| state.to_string().into_bytes();
        let mut state = Latest::new(asking.again()?, Request::Watch {}, bytes);
        let about = json!({"about": about, "aqms": catalog()}).to_string();
        let root = self.root;
        http::serve(self.listener, "web", asking.closed(), move |now, wish| {
            let (status, content_type, body) = match page(wish, &root) {
                Err((status, why)) => (status, TEXT, format!("{why}\n").into_bytes()),
                Ok(Page::File(content_type, text)) => ("200 OK", content_type, text.into()),
                Ok(Page::About) => ("200 OK", JSON, about.clone().into_bytes()),
                Ok(Page::State) => match state.fresh(now) {
                    Ok(state) => ("200 OK", JSON, state.clone()),
                    Err(trouble) => ("503 Service Unavailable", JSON, wrong(trouble)),
                },
                Ok(Page::Set(change)) => {
                    state.forget();
                    match asking.ask(Request::Set(change)) {
                        Ok(_) => ("200 OK", JSON, b"{}".to_vec()),
                        Err(trouble) => ("409 Conflict", JSON, wrong(&trouble)),
                    }
                }
                Ok(Page::Wrong(trouble)) => ("400 Bad Request", JSON, wrong(&trouble)),
            };
            Answer { status, content_type, headers: HEADERS, body }
        })
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn wrong(Trouble { what, hint }: &Trouble) -> Vec<u8> {
    json!({"error": what, "hint": hint}).to_string().into_bytes()
}

/// The pages to see, and the changes to make.
#[derive(Debug)]
enum Page {
    File(&'static str, &'static str),
    /// What does not change: names, and the disciplines with their parameters.
    About,
    State,
    Set(Box<Change>),
    /// A change that is none.
    Wrong(Trouble),
}

/// What is wanted, if it may be; else the status and why not.
fn page(wish: &Wish, root: &str) -> Result<Page, (&'static str, &'static str)> {
    const FORBIDDEN: &str = "403 Forbidden";
    if !wish.host.as_deref().is_some_and(is_address) {
        return Err((FORBIDDEN, "ask for it by the machine's address"));
    }
    let Some(name) = below(wish.path(), root) else {
        return Err((FORBIDDEN, "open the address that was said when the gateway began"));
    };
    if name == "set" {
        let foreign = wish
            .origin
            .as_ref()
            .is_some_and(|origin| origin.strip_prefix("http://") != wish.host.as_deref());
        if wish.method != "POST" {
            return Err(("405 Method Not Allowed", "POST a change"));
        }
        if foreign || wish.content_type.as_deref() != Some(JSON) {
            return Err((FORBIDDEN, "changes are JSON that this page sends"));
        }
        let change = std::str::from_utf8(&wish.body).map_err(|_| ("400 Bad Request", "no text"))?;
        let set = |change| Page::Set(Box::new(change));
        return Ok(request::change(change).map_or_else(Page::Wrong, set));
    }
    if !wish.reads() {
        return Err(("405 Method Not Allowed", "GET it"));
    }
    match name {
        "" => Ok(Page::File("text/html; charset=utf-8", PAGE)),
        "page.css" => Ok(Page::File("text/css; charset=utf-8", STYLE)),
        "page.js" => Ok(Page::File("text/javascript; charset=utf-8", SCRIPT)),
        "about" => Ok(Page::About),
        "state" => Ok(Page::State),
        _ => Err(("404 Not Found", "there is no such page")),
    }
}

/// What comes behind `root` in a path. How long that takes does not tell how much of it was right.
fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let (given, rest) = path.split_at_checked(root.len())?;
    let differ = given.bytes().zip(root.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    (std::hint::black_box(differ) == 0).then_some(rest)
}

/// The queue disciplines and their parameters.
fn catalog() -> Value {
    let disciplines = CATALOG.iter().map(|entry| {
        let parameters = (entry.parameters)().into_iter().map(|one| {
            let choices = match one.kind {
                Kind::Choice(words) => words,
                Kind::Flag => &["true", "false"],
                _ => &[],
            };
            json!({
                "name": one.name, "kind": one.kind.name(), "choices": choices,
                "default": one.default, "allowed": one.allowed, "doc": one.doc,
            })
        });
        let signals = entry.signals.iter().map(|signal| (signal.name, signal.doc));
        json!({
            "name": entry.name, "summary": entry.summary,
            "signals": signals.collect::<Vec<_>>(), "parameters": parameters.collect::<Vec<_>>(),
        })
    });
    disciplines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/0123456789abcdef0123456789abcdef/";

    fn wish(method: &str, path: &str) -> Wish {
        Wish {
            method: method.into(),
            target: format!("{ROOT}{path}"),
            host: Some("127.0.0.1:9".into()),
            origin: None,
            content_type: None,
            body: Vec::new(),
        }
    }

    fn refused(wish: &Wish) -> &'static str {
        page(wish, ROOT).unwrap_err().0.split(' ').next().unwrap()
    }

    #[test]
    fn nothing_is_shown_without_the_secret() {
        for path in ["", "page.js", "state", "about"] {
            assert!(page(&wish("GET", path), ROOT).is_ok());
            assert!(page(&wish("HEAD", path), ROOT).is_ok());
            for root in ["/", "/0123/", &ROOT.replace('f', "e"), &ROOT.to_uppercase(), "//"] {
                let target = format!("{root}{path}");
                assert_eq!(refused(&Wish { target, ..wish("GET", path) }), "403");
            }
        }
        assert_eq!(refused(&wish("GET", "other")), "404");
        assert_eq!(refused(&wish("POST", "state")), "405");
        assert!(page(&Wish { target: format!("{ROOT}?x"), ..wish("GET", "") }, ROOT).is_ok());
    }

    /// A page elsewhere whose own name leads here gets no answer.
    #[test]
    fn it_has_no_other_name_than_its_address() {
        for host in ["127.0.0.1", "127.0.0.1:80", "[::1]:8080", "10.0.0.1:1", "LocalHost:80"] {
            let host = Some(host.into());
            assert!(page(&Wish { host, ..wish("GET", "") }, ROOT).is_ok());
        }
        for host in ["evil.example", "localhost.evil.example:80", "127.0.0.1.evil:80", "", "x:80"] {
            let host = Some(host.into());
            assert_eq!(refused(&Wish { host, ..wish("GET", "") }), "403");
        }
        assert_eq!(refused(&Wish { host: None, ..wish("GET", "") }), "403");
    }

    #[test]
    fn only_the_page_itself_changes_links() {
        let set = Wish {
            origin: Some("http://127.0.0.1:9".into()),
            content_type: Some("application/json".into()),
            body: br#"{"way": "up", "rate": "2mbit"}"#.to_vec(),
            ..wish("POST", "set")
        };
        let Ok(Page::Set(change)) = page(&set, ROOT) else { panic!("refused") };
        assert_eq!((change.way.as_deref(), change.rate), (Some("up"), "2mbit".parse().ok()));
        assert!(page(&Wish { origin: None, ..set.clone() }, ROOT).is_ok(), "no browser");
        for origin in ["http://evil.example", "https://127.0.0.1:9", "http://127.0.0.1:8", "null"] {
            assert_eq!(refused(&Wish { origin: Some(origin.into()), ..set.clone() }), "403");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded"] {
            assert_eq!(refused(&Wish { content_type: Some(kind.into()), ..set.clone() }), "403");
        }
        assert_eq!(refused(&Wish { method: "GET".into(), ..set.clone() }), "405");
        let wrong = Wish { body: br#"{"rate": "2mbps"}"#.to_vec(), ..set };
        let Ok(Page::Wrong(trouble)) = page(&wrong, ROOT) else { panic!("accepted") };
        assert!(trouble.what.contains("rate: \"2mbps\": allowed: "), "{trouble}");
    }

    #[test]
    fn it_is_at_the_loopback_address_unless_told_otherwise() {
        for (text, at) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), at);
        }
        for text in ["", ":80", "x:80", "70000", "127.0.0.1"] {
            assert!(address(text).unwrap_err().contains("PORT"), "{text}");
        }
    }
}
