//! A host's files: logs in, opens sftp channels, carries their bytes.
