//! Documents from files, folders, globs and standard input.
