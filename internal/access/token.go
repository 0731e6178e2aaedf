package access

import "slices"

// TokenScope narrows an access token. Every token reads what its user sees.
type TokenScope string

// The scopes of tokens. Without TokenAdmin a token has the rights of a plain
// user, anyone who its user is.
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

// Needs is the scope that a token must have for op on an entity.
func Needs(op Operation, e Entity) TokenScope {
	switch {
	case e == Session && op != Read:
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

// TokenAllows reports whether a list of scopes has what is needed; nil is no
// token but a person, who may all.
func TokenAllows(scopes []TokenScope, need TokenScope) bool {
	return scopes == nil || need == TokenRead || slices.Contains(scopes, need)
}

// VolumePermission is one thing that a volume's folders may be used for.
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
