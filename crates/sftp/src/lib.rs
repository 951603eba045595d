//! SFTP v3 (draft-ietf-secsh-filexfer-02) with OpenSSH's and our extensions: codec, client, server.
