//! A worker process for the tests.

fn main() {
    forebay_loader::serve_if_worker();
}
