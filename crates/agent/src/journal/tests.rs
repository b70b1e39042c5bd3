use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;
use crate::config::ResolvedSecret;

fn journal(revision: &str) -> Journal {
    let mut config = Config::empty();
    config.spec.revision = revision.to_owned();
    config.secrets.push(ResolvedSecret {
        reference: api::meta::SecretReference {
            name: Some("leaf".to_owned()),
            namespace: Some("fabric".to_owned()),
        },
        password: "hunter2".to_owned(),
    });
    Journal {
        confirmed: Some(Arc::new(config)),
        ..Journal::default()
    }
}

fn store(directory: &TempDir) -> Store {
    let store = Store::new(&directory.path().join("selvedge"), "boot-1");
    store.with_copy_in(&directory.path().join("run"))
}

#[test]
fn a_journal_is_read_as_it_was_written_with_passwords_and_boot() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    assert_eq!(store.load().unwrap(), None);
    store.save(&journal("r1")).unwrap();
    store.save(&journal("r2")).unwrap();
    let found = Store::new(&directory.path().join("selvedge"), "boot-2")
        .load()
        .unwrap()
        .unwrap();
    assert_eq!(found.journal, journal("r2"));
    assert_eq!(found.boot_id, "boot-1");
}

#[test]
fn only_the_owner_reads_file_and_directory() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    store.save(&journal("r1")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&store.file()), 0o600);
    assert_eq!(mode(&store.directory), 0o700);
    // What an earlier crash left behind with other rights does not pass them on.
    let left = store.directory.join("journal.new");
    fs::write(&left, "half").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o666)).unwrap();
    store.save(&journal("r2")).unwrap();
    assert_eq!(mode(&store.file()), 0o600);
}

#[test]
fn a_torn_file_is_detected_at_every_length() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    store.save(&journal("r1")).unwrap();
    let whole = fs::read(store.file()).unwrap();
    for length in 0..whole.len() {
        fs::write(store.file(), whole.split_at(length).0).unwrap();
        assert!(store.load().is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn a_changed_byte_is_detected() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    store.save(&journal("r1")).unwrap();
    let text = fs::read_to_string(store.file()).unwrap();
    fs::write(store.file(), text.replace("hunter2", "hunter3")).unwrap();
    let error = store.load().unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
    assert!(!error.to_string().contains("hunter"));
    fs::write(store.file(), text.replace("journal 1", "journal 9")).unwrap();
    assert!(matches!(store.load(), Err(Error::Format { .. })));
}

#[test]
fn a_save_cut_short_leaves_the_old_journal() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    store.save(&journal("r1")).unwrap();
    // A crash between the creation of the temporary file and the rename.
    fs::write(store.directory.join("journal.new"), "selvedge-jour").unwrap();
    assert_eq!(store.load().unwrap().unwrap().journal, journal("r1"));
    store.save(&journal("r2")).unwrap();
    assert_eq!(store.load().unwrap().unwrap().journal, journal("r2"));
}

#[test]
fn a_directory_that_cannot_be_made_or_written_is_an_error_that_names_it() {
    let directory = TempDir::new().unwrap();
    // A file where the directory should be: root is refused as well, unlike with a directory that is read-only.
    fs::write(directory.path().join("file"), "").unwrap();
    let store = Store::new(&directory.path().join("file/selvedge"), "boot-1");
    let error = store.save(&journal("r1")).unwrap_err();
    assert!(error.to_string().contains("file/selvedge"), "{error}");
    // procfs rejects new files, as a read-only file system does.
    let store = Store::new(Path::new("/proc/self"), "boot-1");
    let error = store.save(&journal("r1")).unwrap_err();
    assert!(error.to_string().contains("journal.new"), "{error}");
}

#[test]
fn only_the_newest_rejections_are_kept() {
    let mut journal = Journal::default();
    let rejected = |number: usize| Rejected {
        fingerprint: format!("f{number}"),
        reason: "API server not reached".to_owned(),
    };
    for number in 0..REJECTED + 3 {
        journal.reject(rejected(number));
    }
    assert_eq!(journal.rejected.len(), REJECTED);
    assert_eq!(journal.rejection("f0"), None);
    assert_eq!(journal.rejection("f34"), Some("API server not reached"));
    journal.accept("f34");
    assert_eq!(journal.rejection("f34"), None);
}

#[test]
fn a_damaged_journal_leaves_the_copy_without_the_trial() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    assert_eq!(store.copies().count(), 0);
    store.save(&journal("r1")).unwrap();
    let trial = Journal {
        trying: journal("r2").confirmed,
        ..journal("r1")
    };
    store.save(&trial).unwrap();
    let whole = fs::read(store.file()).unwrap();
    fs::write(store.file(), whole.split_at(200).0).unwrap();
    store.load().unwrap_err();
    let copies: Vec<_> = store.copies().map(|copy| copy.unwrap().journal).collect();
    assert_eq!(copies, [journal("r1"), journal("r1")]);
    for copy in [store.previous(), store.running().unwrap()] {
        let mode = fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(copy, "selvedge-journal").unwrap();
    }
    assert!(store.copies().all(|copy| copy.is_err()));
}

#[test]
fn nothing_is_left_of_a_journal_that_is_removed() {
    let directory = TempDir::new().unwrap();
    let store = store(&directory);
    store.save(&journal("r1")).unwrap();
    store.set_aside().unwrap();
    store.save(&journal("r2")).unwrap();
    store.remove().unwrap();
    for directory in [&store.directory, &directory.path().join("run")] {
        let left: Vec<_> = fs::read_dir(directory).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
