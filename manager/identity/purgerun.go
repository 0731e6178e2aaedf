package identity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/ent/announcementdismissal"
	"github.com/berthhq/berth/ent/budget"
	"github.com/berthhq/berth/ent/chat"
	"github.com/berthhq/berth/ent/deployment"
	"github.com/berthhq/berth/ent/deploymentkey"
	"github.com/berthhq/berth/ent/externalidentity"
	"github.com/berthhq/berth/ent/groupgrant"
	"github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/ent/imagebuild"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/notice"
	"github.com/berthhq/berth/ent/noticechannel"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/noticesetting"
	"github.com/berthhq/berth/ent/objectstorage"
	"github.com/berthhq/berth/ent/policyattachment"
	"github.com/berthhq/berth/ent/promptrecord"
	"github.com/berthhq/berth/ent/recoverycode"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessiongroup"
	"github.com/berthhq/berth/ent/sessiontemplate"
	"github.com/berthhq/berth/ent/sshkey"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/ent/volumegrant"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
	"github.com/berthhq/berth/manager/task"
)

// Sessions ends the sessions of a user.
type Sessions interface {
	// EndOwned requests the end of a user's live sessions and returns how many have not ended
	// yet.
	EndOwned(ctx context.Context, owner uuid.UUID, why string) (left int, err error)
}

// Folders removes the folders of a user. Every method can be repeated.
type Folders interface {
	// HandOver transfers a folder to another user of the same domain.
	HandOver(ctx context.Context, folder, to uuid.UUID) error
	// Discard deletes a folder in any state.
	Discard(ctx context.Context, folder uuid.UUID) error
	// Forget removes the remains of a user without folders on volumes, and returns how many
	// folders are still being deleted.
	Forget(ctx context.Context, owner uuid.UUID) (left int, err error)
}

// purger runs the tasks that remove users. Each run reads the remaining work, so a task can be
// interrupted anywhere and run again.
type purger struct{ *Service }

// purgeState is the part of the progress that the rows do not contain.
type purgeState struct {
	Owned  int       // number of folders at the beginning
	Moving uuid.UUID // a folder whose files may have moved before its row changed
}

// A purge has this number of steps, plus one for each folder.
const purgeSteps = 4 // credentials, sessions, remains on volumes, rows

// Run removes a user.
func (p purger) Run(ctx context.Context, at *task.Progress, input []byte) error {
	ctx = viewer.SystemContext(ctx)
	var in DeleteUserInput
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	var state purgeState
	if err := at.State(&state); err != nil {
		return err
	}
	u, err := p.client.User.Get(ctx, in.ID)
	if ent.IsNotFound(err) || err == nil && gone(u) {
		return nil // an earlier run was interrupted after the last step
	}
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	if err := p.endCredentials(ctx, u.ID); err != nil {
		return err
	}
	if err := p.note(ctx, at, &state, u.ID, 1); err != nil {
		return err
	}
	left, err := p.sessions.EndOwned(ctx, u.ID, "its owner is purged")
	if err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	if left > 0 {
		return task.Wait("%s to end", counted(left, "session"))
	}
	if err := p.note(ctx, at, &state, u.ID, 2); err != nil {
		return err
	}
	if err := p.emptyHands(ctx, at, in, &state); err != nil {
		return err
	}
	if left, err = p.folders.Forget(ctx, u.ID); err != nil {
		return err
	}
	if left > 0 {
		return task.Wait("%s to be deleted", counted(left, "folder"))
	}
	if err := p.note(ctx, at, &state, u.ID, 3); err != nil {
		return err
	}
	if err := p.remove(ctx, u.ID); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // a cancelled task must still report this once
	p.logins.Disconnect(ctx, u.ID)
	p.purged(ctx, at.By(), u, p.fate(ctx, in, state.Owned))
	return nil
}

// fate describes what happened to a user's folders.
func (p purger) fate(ctx context.Context, in DeleteUserInput, n int) string {
	switch {
	case n == 0:
		return "no folders"
	case in.FoldersTo == nil:
		return counted(n, "folder") + " deleted"
	}
	heir := in.FoldersTo.String()
	if to, err := p.client.User.Get(ctx, *in.FoldersTo); err == nil {
		heir = to.Email
	}
	return counted(n, "folder") + " to " + heir
}

// note saves the progress.
func (p purger) note(ctx context.Context, at *task.Progress, state *purgeState, id uuid.UUID, steps int) error {
	left, err := p.client.Vfolder.Query().Where(owned(id)).Count(ctx)
	if err != nil {
		return fmt.Errorf("count folders: %w", err)
	}
	state.Owned = max(state.Owned, left)
	return at.Save(ctx, state, int64(state.Owned-left+steps), int64(state.Owned+purgeSteps))
}

// endCredentials revokes all credentials of a user.
func (p purger) endCredentials(ctx context.Context, id uuid.UUID) error {
	err := store.InTx(ctx, p.client, func(tx *ent.Tx) error {
		if _, err := lockInactive(ctx, tx, id); err != nil {
			return err
		}
		if err := p.logins.EndLogins(ctx, tx, id); err != nil {
			return err
		}
		return removeAll(ctx, credentialsOf(tx, id))
	})
	if err != nil {
		return fmt.Errorf("end credentials: %w", err)
	}
	p.logins.Disconnect(ctx, id)
	return nil
}

// emptyHands transfers or deletes all folders of a user.
func (p purger) emptyHands(ctx context.Context, at *task.Progress, in DeleteUserInput, state *purgeState) error {
	list, err := p.client.Vfolder.Query().Where(owned(in.ID)).Order(vfolder.ByCreatedAt()).All(ctx)
	if err != nil {
		return fmt.Errorf("list folders: %w", err)
	}
	if in.FoldersTo == nil && !isTrue(in.DeleteFolders) && len(list) > 0 {
		return problem.Precondition("the user owns %s: purge the user again and say what becomes of them", counted(len(list), "folder"))
	}
	if state.Moving != uuid.Nil && in.FoldersTo != nil {
		if err := p.folders.HandOver(ctx, state.Moving, *in.FoldersTo); err != nil {
			return fmt.Errorf("hand over folder %s: %w", state.Moving, err)
		}
	}
	for _, one := range list {
		if one.ID != state.Moving {
			if err := p.send(ctx, at, in, state, one); err != nil {
				return err
			}
		}
		state.Moving = uuid.Nil
		if err := p.note(ctx, at, state, in.ID, 2); err != nil {
			return err
		}
	}
	return nil
}

// send transfers or deletes one folder. A folder in the trash, or an incomplete folder, is always
// deleted.
func (p purger) send(ctx context.Context, at *task.Progress, in DeleteUserInput, state *purgeState, folder *ent.Vfolder) error {
	if in.FoldersTo == nil || folder.Status != vfolder.StatusReady {
		if err := p.folders.Discard(ctx, folder.ID); err != nil {
			return fmt.Errorf("delete folder %s: %w", folder.ID, err)
		}
		return nil
	}
	state.Moving = folder.ID
	if err := p.note(ctx, at, state, in.ID, 2); err != nil {
		return err
	}
	if err := p.folders.HandOver(ctx, folder.ID, *in.FoldersTo); err != nil {
		return fmt.Errorf("hand over folder %s: %w", folder.ID, err)
	}
	return nil
}

// remove deletes the user's rows. If sessions or folders still refer to the user, the row
// stays, without credentials.
func (p purger) remove(ctx context.Context, id uuid.UUID) error {
	err := store.InTx(ctx, p.client, func(tx *ent.Tx) error {
		u, err := lockInactive(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := emptyHanded(ctx, tx, id); err != nil {
			return err
		}
		if err := removeAll(ctx, append(credentialsOf(tx, id), tiesOf(tx, id)...)); err != nil {
			return err
		}
		named, err := tx.Session.Query().Where(session.OwnerID(id)).Exist(ctx)
		if err != nil {
			return err
		}
		if !named {
			named, err = tx.Vfolder.Query().Where(vfolder.Or(vfolder.CreatorID(id), vfolder.OwnerID(id))).Exist(ctx)
		}
		if err != nil {
			return err
		}
		if !named {
			return tx.User.DeleteOneID(id).Exec(ctx)
		}
		return bury(tx, u).Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("remove rows: %w", err)
	}
	return nil
}

// lockInactive returns and locks a user who can be purged.
func lockInactive(ctx context.Context, tx *ent.Tx, id uuid.UUID) (*ent.User, error) {
	u, err := tx.User.Query().Where(user.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock user: %w", err)
	}
	if u.Status == user.StatusActive {
		return nil, problem.Precondition("the user is active again")
	}
	return u, nil
}

// emptyHanded returns an error if a concurrent request has created an object after its step was
// done; the purge then starts again.
func emptyHanded(ctx context.Context, tx *ent.Tx, id uuid.UUID) error {
	live, err := tx.Session.Query().Where(session.OwnerID(id), session.TerminatedAtIsNil()).Count(ctx)
	if err != nil {
		return fmt.Errorf("count sessions: %w", err)
	}
	folders, err := tx.Vfolder.Query().Where(vfolder.OwnerID(id), vfolder.StatusNEQ(vfolder.StatusDeleted)).Count(ctx)
	if err != nil {
		return fmt.Errorf("count folders: %w", err)
	}
	served, err := serving(ctx, tx, deployment.OwnerID(id))
	if err != nil {
		return err
	}
	if len(served) > 0 {
		return task.Wait("%s came late", counted(len(served), "deployment"))
	}
	if live+folders > 0 {
		return task.Wait("%s and %s came late", counted(live, "live session"), counted(folders, "folder"))
	}
	return nil
}

// bury makes the row of a user unusable, and frees their names.
func bury(tx *ent.Tx, u *ent.User) *ent.UserUpdateOne {
	return tx.User.UpdateOneID(u.ID).
		SetUsername(tombstone(u.ID)).SetEmail(tombstone(u.ID) + "@purged.invalid").SetFullName(known(u)).
		SetStatus(user.StatusDeleted).SetRole(user.RoleUser).SetPasswordHash("none").
		SetAllowedAddresses([]string{}).SetContainerGids([]int{}).ClearContainerUID().ClearContainerGid().
		ClearTotpSealed().ClearTotpEnabledAt()
}

// removal deletes the rows of one table.
type removal struct {
	what string
	exec func(context.Context) (int, error)
}

func removeAll(ctx context.Context, list []removal) error {
	for _, r := range list {
		if _, err := r.exec(ctx); err != nil {
			return fmt.Errorf("remove %s: %w", r.what, err)
		}
	}
	return nil
}

// credentialsOf are the tables with a user's credentials.
func credentialsOf(tx *ent.Tx, id uuid.UUID) []removal {
	return []removal{
		{"logins", tx.LoginSession.Delete().Where(loginsession.UserID(id)).Exec},
		{"access tokens", tx.AccessToken.Delete().Where(accesstoken.UserID(id)).Exec},
		{"keypairs", tx.Keypair.Delete().Where(keypair.UserID(id)).Exec},
		{"keys for models", tx.DeploymentKey.Delete().Where(deploymentkey.UserID(id)).Exec},
		{"recorded prompts", tx.PromptRecord.Delete().Where(promptrecord.UserID(id)).Exec},
		{"SSH keys", tx.SSHKey.Delete().Where(sshkey.UserID(id)).Exec},
		{"recovery codes", tx.RecoveryCode.Delete().Where(recoverycode.UserID(id)).Exec},
		{"external identities", tx.ExternalIdentity.Delete().Where(externalidentity.UserID(id)).Exec},
		{"object storages", tx.ObjectStorage.Delete().Where(objectstorage.OwnerID(id)).Exec},
	}
}

// retireImages marks the images that a user has made of sessions as gone. They stay private: without an
// owner, only administrators see them.
func retireImages(tx *ent.Tx, id uuid.UUID) func(context.Context) (int, error) {
	return tx.Image.Update().Where(image.OwnerID(id)).SetStatus(image.StatusGone).
		SetVisibility(image.VisibilityPrivate).ClearOwnerID().ClearProjectID().Save
}

// tiesOf are the tables with relations between a user and other objects.
func tiesOf(tx *ent.Tx, id uuid.UUID) []removal {
	return []removal{
		{"notices", tx.Notice.Delete().Where(notice.UserID(id)).Exec},
		{"channels of notices", tx.NoticeChannel.Delete().Where(noticechannel.UserID(id)).Exec},
		{"deliveries of notices", tx.NoticeDelivery.Delete().Where(noticedelivery.UserID(id)).Exec},
		{"settings of notices", tx.NoticeSetting.Delete().Where(noticesetting.UserID(id)).Exec},
		{"hidden announcements", tx.AnnouncementDismissal.Delete().Where(announcementdismissal.UserID(id)).Exec},
		{"chats", tx.Chat.Delete().Where(chat.OwnerID(id)).Exec},
		{"deployments", tx.Deployment.Delete().Where(deployment.OwnerID(id)).Exec},
		{"image builds", tx.ImageBuild.Delete().Where(imagebuild.OwnerID(id)).Exec},
		{"memberships", tx.Membership.Delete().Where(membership.UserID(id)).Exec},
		{"budgets", tx.Budget.Delete().Where(budget.UserID(id)).Exec},
		{"policies", tx.PolicyAttachment.Delete().Where(policyattachment.UserID(id)).Exec},
		{"roles", tx.RoleGrant.Delete().Where(rolegrant.Or(rolegrant.UserID(id), rolegrant.ScopeID(id))).Exec},
		{"resource groups", tx.GroupGrant.Delete().Where(groupgrant.UserID(id)).Exec},
		{"volumes", tx.VolumeGrant.Delete().Where(volumegrant.UserID(id)).Exec},
		{"images", retireImages(tx, id)},
		{"session templates", tx.SessionTemplate.Delete().Where(sessiontemplate.OwnerID(id)).Exec},
		{"session groups", tx.SessionGroup.Delete().Where(sessiongroup.OwnerID(id)).Exec},
	}
}
