//! A file being written: it has its name when it is complete, and before that nothing of it is there.
//!
//! The data goes to `.NAME.partial` beside the final name, locked while it is written. One that a killed process left
//! behind is written over by the next, so at most one is ever there.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// A file that is not complete yet. Dropped before it is, it goes away.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
    complete: bool,
}

impl Partial {
    /// Begins a file that will have the name `target`. Links are followed; what is no regular file is refused.
    pub fn create(target: &Path) -> io::Result<Self> {
        // `/dev/stdout` may lead to a regular file, but its user does not mean to replace that.
        let device = ["/dev", "/proc"].iter().any(|folder| target.starts_with(folder));
        let target = match fs::metadata(target) {
            Ok(about) if about.is_file() && !device => fs::canonicalize(target)?,
            Ok(_) => {
                return Err(io::Error::other("is not a regular file, and only those are written"));
            }
            Err(_) => target.to_owned(),
        };
        let name = target.file_name().ok_or_else(|| io::Error::other("names no file"))?;
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(".partial");
        let path = target.with_file_name(partial);
        let file = open_locked(&path)?;
        file.set_len(0)?;
        Ok(Partial { file, path, target, complete: false })
    }

    /// Lets nobody but its owner read it, where the system has owners.
    pub fn make_private(&self) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            self.file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        Ok(())
    }

    /// Makes the data durable and gives it its name.
    pub fn complete(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.target)?;
        self.complete = true;
        sync_folder(&self.target)
    }
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Partial {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.complete {
            // Nobody waits for the result, and the next writer takes the file over.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file at `path`, new or left behind, locked.
fn open_locked(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) if is_still_there(&file, path) => return Ok(file),
            // The other writer gave it its name between our two steps: this is its file now, not ours.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("is being written by another process"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |about: fs::Metadata| (about.dev(), about.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => place(ours) == place(there),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still_there(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Where a file lies: what it needs beside it has room there.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A rename is durable only once its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder_of(path))?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        // What a killed process left behind.
        fs::write(folder.path().join(".x.partial"), "half of something longer").unwrap();
        let mut partial = Partial::create(&path).unwrap();
        partial.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let second = Partial::create(&path).unwrap_err().to_string();
        assert!(second.contains("another process"), "{second}");
        partial.complete().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        drop(Partial::create(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        Partial::create(&link).unwrap().complete().unwrap();
        assert!(link.is_symlink() && fs::read(&real).unwrap().is_empty());
        assert!(Partial::create(Path::new("/dev/null")).is_err());
        assert!(Partial::create(folder.path()).is_err());
    }
}
