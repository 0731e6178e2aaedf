package access

import "slices"

// TokenScope restricts an access token. Every token can read what its user can read.
type TokenScope string

// The scopes of tokens. Without TokenAdmin, a token has at most the permissions of a plain
// user.
const (
	TokenRead     TokenScope = "read"
	TokenSessions TokenScope = "sessions" // start, change, enter and end sessions
	TokenFolders  TokenScope = "folders"  // change folders, their files and object storages
	TokenAccount  TokenScope = "account"  // the user's own profile and credentials
	TokenAdmin    TokenScope = "admin"    // everything else
)

// TokenScopes lists all.
func TokenScopes() []TokenScope {
	return []TokenScope{TokenRead, TokenSessions, TokenFolders, TokenAccount, TokenAdmin}
}

// Needs returns the token scope that op on an entity requires.
func Needs(op Operation, e Entity) TokenScope {
	switch {
	case (e == Session || e == Template) && op != Read:
		return TokenSessions
	case (e == Vfolder || e == ObjectStorage) && op != Read:
		return TokenFolders
	case op == Read:
		return TokenRead
	case e == Credential:
		return TokenAccount
	}
	return TokenAdmin
}

// TokenAllows reports whether a list of scopes includes the required one; nil is not a token,
// and allows all.
func TokenAllows(scopes []TokenScope, need TokenScope) bool {
	return scopes == nil || need == TokenRead || slices.Contains(scopes, need)
}

// VolumePermission is an operation on the folders of a volume.
type VolumePermission string

// The permissions on volumes.
const (
	VolumeCreate            VolumePermission = "create_folder"
	VolumeModify            VolumePermission = "modify_folder"
	VolumeDelete            VolumePermission = "delete_folder"
	VolumeMount             VolumePermission = "mount"
	VolumeUpload            VolumePermission = "upload"
	VolumeDownload          VolumePermission = "download"
	VolumeInvite            VolumePermission = "invite"
	VolumeSetUserPermission VolumePermission = "set_user_permission"
)

// VolumePermissions lists all.
func VolumePermissions() []VolumePermission {
	return []VolumePermission{
		VolumeCreate, VolumeModify, VolumeDelete, VolumeMount, VolumeUpload, VolumeDownload, VolumeInvite, VolumeSetUserPermission,
	}
}
