//! A bar on standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar for something that takes a known time; removes itself when dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar at the beginning.
    pub fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new(1000);
        let style = ProgressStyle::with_template("{msg} {bar:40} {percent:>3} %")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        bar.set_message(what);
        Self(bar)
    }

    /// Move it.
    pub fn set_permille(&self, permille: u32) {
        self.0.set_position(permille.into());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
