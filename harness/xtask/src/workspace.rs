//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The workspace that this program was built from.
pub struct Workspace {
    root: PathBuf,
}

/// A library crate under `crates/`.
pub struct Crate {
    pub name: String,
    pub dir: PathBuf,
}

impl Workspace {
    pub fn find() -> Result<Self> {
        // `cargo run` says where this package is now; a build may have been
        // moved since.
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package
            .ancestors()
            .nth(2)
            .filter(|root| root.join("Cargo.toml").is_file())
            .with_context(|| format!("no workspace above {}", package.display()))?;
        Ok(Self {
            root: root.to_path_buf(),
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A target directory of its own for builds with other flags, so that they
    /// do not push the ordinary ones out.
    pub fn target(&self, name: &str) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.path("target"), PathBuf::from)
            .join(name)
    }

    /// The libraries under `crates/`, by name.
    pub fn crates(&self) -> Result<Vec<Crate>> {
        let folder = self.path("crates");
        let mut crates = Vec::new();
        for entry in folder
            .read_dir()
            .with_context(|| format!("cannot list {}", folder.display()))?
        {
            let dir = entry?.path();
            if dir.join("Cargo.toml").is_file() {
                let name = dir.file_name().unwrap_or_default();
                crates.push(Crate {
                    name: name.to_string_lossy().into_owned(),
                    dir,
                });
            }
        }
        crates.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(crates)
    }
}

/// All Rust files below `folder`, sorted; none if it does not exist.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(folder) = todo.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
