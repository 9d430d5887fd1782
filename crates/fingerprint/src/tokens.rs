//! The tokens of a file, without documentation and what is for tests alone.

use std::iter::Peekable;
use std::path::{Path, PathBuf};

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A hash that is the same with every compiler: FNV-1a.
pub(crate) struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds a word, and that it ends.
    pub(crate) fn word(&mut self, word: &str) {
        for byte in word.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn value(&self) -> u64 {
        self.0
    }
}

/// A file, and the folder that its modules are in.
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    pub(crate) folder: PathBuf,
    /// Whether its sentences count.
    pub(crate) sentences: bool,
}

/// Adds a file; gives the modules that it has in files of their own.
pub(crate) fn add(text: &str, module: &Module, hash: &mut Hash) -> Result<Vec<Module>, String> {
    let tokens: TokenStream = text.parse().map_err(|e| format!("not Rust: {e}"))?;
    let beside = module.file.parent().unwrap_or(Path::new(""));
    let mut walk = Walk { hash, beside, below: Vec::new(), sentences: module.sentences };
    walk.stream(tokens, &module.folder)?;
    Ok(walk.below)
}

struct Walk<'a> {
    hash: &'a mut Hash,
    /// The folder of the file itself.
    beside: &'a Path,
    below: Vec<Module>,
    sentences: bool,
}

impl Walk<'_> {
    fn stream(&mut self, tokens: TokenStream, folder: &Path) -> Result<(), String> {
        let mut tokens = tokens.into_iter().peekable();
        let mut compared = false;
        let mut path = None;
        while let Some(token) = tokens.next() {
            let after = std::mem::replace(&mut compared, is_one_of(Some(&token), "=|"));
            match &token {
                TokenTree::Literal(text)
                    if !(self.sentences || after || is_one_of(tokens.peek(), "=|!"))
                        && is_sentence(&text.to_string()) =>
                {
                    self.hash.word("a sentence");
                }
                TokenTree::Punct(hash) if hash.as_char() == '#' => {
                    let inner = tokens
                        .next_if(|t| matches!(t, TokenTree::Punct(bang) if bang.as_char() == '!'));
                    match attribute(tokens.peek()).as_deref() {
                        Some("doc") => drop(tokens.next()),
                        Some("cfg(test)") if inner.is_none() && item_follows(tokens.clone()) => {
                            tokens.next();
                            skip_item(&mut tokens);
                        }
                        other => {
                            path = other.and_then(path_of).or(path);
                            self.token(token, folder)?;
                            if let Some(bang) = inner {
                                self.token(bang, folder)?;
                            }
                        }
                    }
                }
                TokenTree::Ident(word) if word == "mod" => {
                    self.token(token, folder)?;
                    self.module(&mut tokens, folder, path.take())?;
                }
                _ => self.token(token, folder)?,
            }
        }
        Ok(())
    }

    /// What follows `mod`: a name, then a body here or a file, which `path` may name.
    fn module(
        &mut self,
        tokens: &mut Peekable<IntoIter>,
        folder: &Path,
        path: Option<String>,
    ) -> Result<(), String> {
        let Some(TokenTree::Ident(name)) = tokens.next_if(|t| matches!(t, TokenTree::Ident(_)))
        else {
            return Ok(()); // `mod` of a macro
        };
        self.hash.word(&name.to_string());
        let own = folder.join(name.to_string());
        if let Some(TokenTree::Group(body)) = tokens.next_if(|t| matches!(t, TokenTree::Group(_))) {
            return self.group(&body, &own);
        }
        let files = match path {
            Some(path) => vec![self.beside.join(path)],
            None => vec![own.with_extension("rs"), own.join("mod.rs")],
        };
        let Some(file) = files.into_iter().find(|file| file.exists()) else {
            return Err(format!("there is no file of the module {name}"));
        };
        self.below.push(Module { file, folder: own, sentences: self.sentences });
        Ok(())
    }

    fn group(&mut self, group: &proc_macro2::Group, folder: &Path) -> Result<(), String> {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        self.hash.word(open);
        self.stream(group.stream(), folder)?;
        self.hash.word(close);
        Ok(())
    }

    fn token(&mut self, token: TokenTree, folder: &Path) -> Result<(), String> {
        match token {
            TokenTree::Group(group) => self.group(&group, folder)?,
            TokenTree::Ident(ident) => self.hash.word(&ident.to_string()),
            TokenTree::Literal(literal) => self.hash.word(&literal.to_string()),
            TokenTree::Punct(punct) => {
                let joint = if punct.spacing() == Spacing::Joint { "+" } else { "" };
                self.hash.word(&format!("{}{joint}", punct.as_char()));
            }
        }
        Ok(())
    }
}

fn is_one_of(token: Option<&TokenTree>, marks: &str) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if marks.contains(punct.as_char()))
}

/// Whether a literal is a text for people: of one line, in which a word follows a word.
fn is_sentence(literal: &str) -> bool {
    let is_word = |word: &str| word.len() > 1 && word.bytes().all(|b| b.is_ascii_alphabetic());
    let text = literal.replace("\\\n", " "); // goes on in the next line of the source
    let words: Vec<&str> = text.trim_matches('"').split(' ').filter(|w| !w.is_empty()).collect();
    text.starts_with('"')
        && !["\n", "\\n"].iter().any(|end| text.contains(end))
        && words.windows(2).any(|two| two.iter().all(|word| is_word(word)))
}

/// The attribute in these brackets: its text if it is `cfg(test)` or names a path, else its first word.
fn attribute(token: Option<&TokenTree>) -> Option<String> {
    let TokenTree::Group(group) = token? else { return None };
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let text: String = group.stream().to_string().split_whitespace().collect();
    if text == "cfg(test)" || path_of(&text).is_some() {
        return Some(text);
    }
    group.stream().into_iter().next().map(|first| first.to_string())
}

/// The path in the text of an attribute `path`.
fn path_of(attribute: impl AsRef<str>) -> Option<String> {
    attribute.as_ref().strip_prefix("path=\"")?.strip_suffix('"').map(String::from)
}

/// Whether an item is next, and not a field or a statement, whose end is not as plain to see.
fn item_follows(mut tokens: Peekable<IntoIter>) -> bool {
    tokens.next();
    while let Some(token) = tokens.next() {
        match token {
            // Other attributes, and how visible it is.
            TokenTree::Punct(hash) if hash.as_char() == '#' => drop(tokens.next()),
            TokenTree::Ident(word) if word == "pub" => {
                tokens.next_if(|t| matches!(t, TokenTree::Group(_)));
            }
            TokenTree::Ident(word) => {
                let items = ["mod", "fn", "use", "impl", "const", "static", "struct", "enum"];
                return items.iter().any(|item| word == item);
            }
            _ => return false,
        }
    }
    false
}

/// Takes an item: all up to its `;` or its body, whichever comes first.
fn skip_item(tokens: &mut Peekable<IntoIter>) {
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' => drop(tokens.next()),
            TokenTree::Punct(end) if end.as_char() == ';' => return,
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => return,
            _ => {}
        }
    }
}
