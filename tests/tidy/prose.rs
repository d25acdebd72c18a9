//! What people read, as sentences: that they are short, and in words that are known outside of this project.

use crate::repo::Repo;
use crate::{Report, looked_at};

const SENTENCE: usize = 30;

/// Points that end no sentence.
const ABBREVIATIONS: [&str; 6] = ["e.g.", "i.e.", "etc.", "cf.", "vs.", "approx."];

/// Words that only this project would say, and the words of the field. Some are old names of parts of the loader.
const WORDS: [(&str, &str); 24] = [
    ("broken off", "incomplete, or stopped"),
    ("bury", "replace"),
    ("buried", "replaced"),
    ("crew", "worker pool"),
    ("deal out", "shard, or assign to ranks"),
    ("deals out", "shards, or assigns to ranks"),
    ("dealt out", "sharded, or assigned to ranks"),
    ("desk", "node services"),
    ("far away", "remote"),
    ("for ever", "forever, or always"),
    ("hand on", "pass on"),
    ("handed on", "passed on"),
    ("hands on", "passes on"),
    ("mourn", "reap"),
    ("none the less", "still"),
    ("offence", "error"),
    ("outlive", "recover from"),
    ("passed over", "skipped"),
    ("shall", "must, or can"),
    ("strangers'", "untrusted"),
    ("that which", "the thing by its name"),
    ("usher", "output order"),
    ("watchman", "watchdog"),
    ("whoever", "the user, thread or program by its name"),
];

pub(crate) fn sentences_are_short(repo: &Repo) -> Report {
    let (mut sentences, mut problems) = (0, Vec::new());
    for (path, text) in repo.pages() {
        for block in blocks(text).iter().filter(|block| !block.is_table) {
            for (line, words) in block.sentences() {
                sentences += 1;
                if words > SENTENCE {
                    problems.push(format!("{path}:{line}: a sentence of {words} words, at most {SENTENCE}"));
                }
            }
        }
    }
    looked_at(sentences, problems)
}

pub(crate) fn words_are_known_outside(repo: &Repo) -> Report {
    let (mut looked, mut problems) = (0, Vec::new());
    for (path, text) in repo.pages() {
        for block in blocks(text) {
            looked += 1;
            let said = block.said();
            for (word, better) in WORDS.iter().filter(|(word, _)| said.contains(&format!(" {word} "))) {
                problems.push(format!("{path}:{}: `{word}` means nothing outside: {better}", block.line));
            }
        }
    }
    looked_at(looked, problems)
}

/// A paragraph, a heading, an item of a list or a row of a table.
struct Block {
    /// The number of its first line.
    line: usize,
    /// Its lines. Code between backticks is one backtick, a link its text.
    text: String,
    is_table: bool,
}

impl Block {
    fn new(line: usize, text: &str, is_table: bool) -> Self {
        Self { line, text: without_markup(text), is_table }
    }

    /// Each sentence: the line where it begins, and how many words it has.
    fn sentences(&self) -> Vec<(usize, usize)> {
        let words: Vec<(usize, &str)> = (self.line..)
            .zip(self.text.lines())
            .flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)))
            .filter(|(_, word)| word.contains(|c: char| c.is_alphanumeric() || c == '`'))
            .collect();
        let (mut sentences, mut from) = (Vec::new(), 0);
        for (at, (_, word)) in words.iter().enumerate() {
            if ends(word, words.get(at + 1).map(|(_, next)| *next)) {
                sentences.push((words[from].0, at + 1 - from));
                from = at + 1;
            }
        }
        sentences
    }

    /// The words in lower case, with a space between them and a comma for each point or bracket.
    fn said(&self) -> String {
        let text = self.text.replace('*', "").replace(|c: char| !c.is_whitespace() && !is_of_word(c), " , ");
        text.split_whitespace().map(|word| format!(" {}", word.to_lowercase())).collect::<String>() + " "
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "'`_-".contains(c)
}

/// Whether a word is the last of its sentence.
fn ends(word: &str, next: Option<&str>) -> bool {
    let bare = word.trim_end_matches([')', ']', '"', '\'', '*', '_']);
    let stops = bare.ends_with(['.', '!', '?']) && !ABBREVIATIONS.iter().any(|short| bare.ends_with(short));
    next.is_none_or(|next| stops && !next.starts_with(char::is_lowercase))
}

/// The page in blocks, without code and comments.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let (mut in_code, mut in_comment, mut in_list, mut after_blank) = (false, false, false, true);
    for (number, line) in (1..).zip(page.lines()) {
        let start = line.trim_start();
        let indent = line.len() - start.len();
        let is_fence = ["```", "~~~", ":::"].iter().any(|fence| start.starts_with(fence));
        in_code ^= is_fence && !start.starts_with(":::");
        in_comment |= start.starts_with("<!--");
        let is_drawn = indent >= 4 && after_blank && !in_list;
        let is_skipped = in_code || is_fence || in_comment || is_drawn || is_definition(start);
        in_comment &= !line.contains("-->");
        after_blank = start.is_empty() || is_drawn;
        let is_table = start.starts_with('|');
        let (is_item, start) = item(start).map_or((false, start), |text| (true, text));
        in_list = is_item || in_list && (start.is_empty() || indent > 0 || open.is_some());
        let is_heading = start.starts_with('#');
        if start.is_empty() || is_skipped || is_table || is_item || is_heading {
            blocks.extend(open.take().map(|(from, text)| Block::new(from, &text, false)));
        }
        if start.is_empty() || is_skipped {
            continue;
        }
        if is_table || is_heading {
            blocks.push(Block::new(number, start, is_table));
        } else {
            let (_, text) = open.get_or_insert_with(|| (number, String::new()));
            text.push_str(start.trim_start_matches("> "));
            text.push('\n');
        }
    }
    blocks.extend(open.map(|(from, text)| Block::new(from, &text, false)));
    blocks
}

/// The text of a line that begins an item of a list: `- `, `* `, `+ `, `1. `.
fn item(line: &str) -> Option<&str> {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks = if number.len() < line.len() { [". ", ") ", ". "] } else { ["- ", "* ", "+ "] };
    marks.iter().find_map(|mark| number.strip_prefix(mark))
}

/// Whether a line names a target: `[name]: target`, `(name)=`.
fn is_definition(line: &str) -> bool {
    line.starts_with('[') && line.contains("]: ") || line.starts_with('(') && line.ends_with(")=")
}

/// The text with code between backticks as one backtick, and links as their texts. Breaks of lines stay.
fn without_markup(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['`', '(']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let mark = &from[..from.len() - from.trim_start_matches('`').len()];
        let (length, inner) = match (mark.is_empty(), before.ends_with(']')) {
            (false, _) => match from[mark.len()..].find(mark) {
                Some(end) => (end + 2 * mark.len(), "`"),
                None => (mark.len(), "`"),
            },
            (true, true) => (from.find(')').map_or(1, |end| end + 1), ""),
            (true, false) => (1, "("),
        };
        plain.push_str(inner);
        plain.extend(from[..length].matches('\n'));
        rest = &from[length..];
    }
    plain + rest
}
