package graph_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/managertest"
)

type vars = managertest.Vars

// matrix has the input of each mutation.
var matrix = map[string]cell{
	"createDomain":  func(f *fixture) vars { return vars{"name": f.name()} },
	"createProject": func(f *fixture) vars { return vars{"name": f.name(), "domain": f.domain.ID} },
	"createUser": func(f *fixture) vars {
		return vars{"email": f.name() + "@example.org", "password": "a fine password", "domain": f.domain.ID}
	},
	"updateUser":           func(f *fixture) vars { return vars{"id": f.owner.ID, "fullName": f.name()} },
	"addMembership":        func(f *fixture) vars { return vars{"project": f.project.ID, "user": f.fresh().ID} },
	"removeMembership":     func(f *fixture) vars { return vars{"project": f.project.ID, "user": f.member().ID} },
	"createResourcePolicy": func(f *fixture) vars { return vars{"name": f.name()} },
	"updateResourcePolicy": func(f *fixture) vars { return vars{"id": f.policy().ID, "maxSessions": 3} },
	"attachResourcePolicy": func(f *fixture) vars { return vars{"user": f.owner.ID} },
	"changePassword":       func(f *fixture) vars { return vars{"current": "not it", "new": "another fine one"} },
	"createAccessToken":    func(f *fixture) vars { return vars{"name": f.name()} },
	"revokeAccessToken": func(f *fixture) vars {
		return vars{"id": f.Client.AccessToken.Create().SetName(f.name()).SetPrefix("x").SetHash(hash()).SetUser(f.owner).SaveX(f.System(f.t)).ID}
	},
	"revokeLoginSession": func(f *fixture) vars {
		return vars{"id": f.Client.LoginSession.Create().SetHash(hash()).SetExpiresAt(time.Now().Add(time.Hour)).SetUser(f.owner).SaveX(f.System(f.t)).ID}
	},
	"createResourceGroup": func(f *fixture) vars { return vars{"name": f.name()} },
	"updateAgent": func(f *fixture) vars {
		return vars{"id": f.agent(func(*ent.AgentCreate) {}), "schedulable": true}
	},
	"drainAgent": func(f *fixture) vars {
		return vars{"id": f.agent(func(*ent.AgentCreate) {}), "after": 600, "action": "TERMINATE", "reason": f.name()}
	},
	"undrainAgent": func(f *fixture) vars {
		return vars{"id": f.agent(func(a *ent.AgentCreate) { a.SetDrainAction(agent.DrainActionTerminate) })}
	},
	"deleteAgent": func(f *fixture) vars {
		return vars{"id": f.agent(func(a *ent.AgentCreate) { a.SetStatus(agent.StatusLost) })}
	},
	"restartPlugin": func(f *fixture) vars {
		return vars{"id": f.agent(func(*ent.AgentCreate) {}), "plugin": "cuda"}
	},
	"auditOccupancy":  func(*fixture) vars { return nil },
	"createJoinToken": func(f *fixture) vars { return vars{"role": "AGENT"} },
	"createRegistry":  func(f *fixture) vars { return vars{"name": f.name(), "host": f.name() + ".example.org"} },
	"updateRegistry":  func(f *fixture) vars { return vars{"id": *f.image().RegistryID, "password": "new"} },
	"deleteRegistry":  func(f *fixture) vars { return vars{"id": *f.image().RegistryID} },
	"scanRegistry": func(f *fixture) vars {
		r := f.Client.Registry.Create().SetName(f.name()).SetHost(fmt.Sprint("127.0.0.1:", f.n)).SetPlainHTTP(true).SaveX(f.System(f.t))
		return vars{"id": r.ID}
	},
	"sweepRegistry":      func(f *fixture) vars { return vars{"id": *f.image().RegistryID, "dryRun": true} },
	"setRegistryWebhook": func(f *fixture) vars { return vars{"id": *f.image().RegistryID, "enabled": true} },
	"registerImage": func(f *fixture) vars {
		host := fmt.Sprint("127.0.0.1:", f.n)
		f.Client.Registry.Create().SetName(f.name()).SetHost(host).SetPlainHTTP(true).ExecX(f.System(f.t))
		return vars{"reference": host + "/i:1"}
	},
	"testRegistry": func(f *fixture) vars {
		r := f.Client.Registry.Create().SetName(f.name()).SetHost(fmt.Sprint("127.0.0.1:", f.n)).SetPlainHTTP(true).SaveX(f.System(f.t))
		return vars{"id": r.ID}
	},
	"prepullImage": func(f *fixture) vars {
		return vars{"image": f.image().ID, "group": f.group().ID}
	},
	"rollbackImage":            func(f *fixture) vars { return vars{"id": f.image().ID} },
	"renameImage of one's own": func(f *fixture) vars { return vars{"id": f.ownImage(), "tag": "a b"} },
	"renameImage":              func(f *fixture) vars { return vars{"id": f.image().ID, "tag": "2"} },
	"deleteImage":              func(f *fixture) vars { return vars{"id": f.image().ID} },
	"deleteImage of one's own": func(f *fixture) vars { return vars{"id": f.ownImage()} },
	"updateImage":              func(f *fixture) vars { return vars{"id": f.image().ID, "description": "x"} },
	"updateImage of one's own": func(f *fixture) vars { return vars{"id": f.ownImage(), "description": "x"} },
	"updateImage autoPull of one's own": func(f *fixture) vars {
		return vars{"id": f.ownImage(), "autoPull": []uuid.UUID{f.group().ID}}
	},
	"updateImage deprecated": func(f *fixture) vars { return vars{"id": f.image().ID, "deprecated": f.name()} },
	"commitSession":          func(f *fixture) vars { return vars{"session": f.running(), "name": "env"} },
	"buildImage": func(f *fixture) vars {
		return vars{"name": "env", "kind": "DOCKERFILE", "text": "FROM " + f.startable().Reference, "project": f.project.ID}
	},
	"cancelImageBuild": func(f *fixture) vars { return vars{"id": f.build()} },
	"deleteBuildCache": func(f *fixture) vars { return vars{"project": f.project.ID} },
	"createDeployment": func(f *fixture) vars {
		return vars{"name": "m-" + f.name(), "project": f.project.ID, "revision": f.revision()}
	},
	"updateDeployment":      func(f *fixture) vars { return vars{"id": f.deployment(), "description": "new"} },
	"addDeploymentRevision": func(f *fixture) vars { return vars{"deployment": f.deployment(), "revision": f.revision()} },
	"rollBackDeployment":    func(f *fixture) vars { return vars{"id": f.deployment(), "revision": 1} },
	"promoteDeployment":     func(f *fixture) vars { return vars{"id": f.deployment()} },
	"deleteDeployment":      func(f *fixture) vars { return vars{"id": f.deployment()} },
	"deletePromptRecords":   func(f *fixture) vars { return vars{"deployment": f.deployment()} },
	"createDeploymentKey":   func(f *fixture) vars { return vars{"name": f.name(), "deployment": f.deployment()} },
	"updateDeploymentKey":   func(f *fixture) vars { return vars{"id": f.modelKey(), "tokenBudget": 5} },
	"revokeDeploymentKey":   func(f *fixture) vars { return vars{"id": f.modelKey()} },
	"createChat":            func(f *fixture) vars { return vars{"columns": []vars{f.asked()}} },
	"updateChat":            func(f *fixture) vars { return vars{"id": f.chat(), "shared": true} },
	"deleteChat":            func(f *fixture) vars { return vars{"id": f.chat()} },
	"sendChatPrompt":        func(f *fixture) vars { return vars{"chat": f.chat(), "prompt": "hello"} },
	"regenerateChatAnswer":  func(f *fixture) vars { return vars{"turn": f.turn(f.chat()), "column": 0} },
	"stopChatAnswers":       func(f *fixture) vars { return vars{"chat": f.chat()} },
	"voteChatAnswer": func(f *fixture) vars {
		turn := f.turn(f.chat())
		return vars{"turn": turn, "answers": []uuid.UUID{f.answer(turn, 0), f.answer(turn, 1)}}
	},
	"replayChat": func(f *fixture) vars {
		chat := f.chat()
		f.answer(f.turn(chat), 0)
		return vars{"chat": chat, "column": 0, "model": vars{"endpoint": f.endpoint(), "name": "m"}}
	},
	"importChat": func(*fixture) vars {
		return vars{"document": `{"format": "berth.chat/1", "title": "", "columns": [{"number": 0}], "turns": []}`}
	},
	"markNoticesRead":   func(f *fixture) vars { return vars{"ids": []uuid.UUID{f.notice()}} },
	"setNoticeSettings": func(*fixture) vars { return vars{"kinds": []vars{{"kind": "QUOTA", "routes": []string{"PAGE"}}}} },
	"createNoticeChannel": func(f *fixture) vars {
		return vars{"type": "WEBHOOK", "name": f.name(), "url": "https://example.org/hook"}
	},
	"createNoticeChannel of the cluster": func(f *fixture) vars {
		return vars{"type": "WEBHOOK", "name": f.name(), "url": "https://example.org/hook", "cluster": true}
	},
	"updateNoticeChannel":  func(f *fixture) vars { return vars{"id": f.channel(), "enabled": false} },
	"deleteNoticeChannel":  func(f *fixture) vars { return vars{"id": f.channel()} },
	"testNoticeChannel":    func(f *fixture) vars { return vars{"id": f.channel()} },
	"resendNoticeDelivery": func(f *fixture) vars { return vars{"id": f.delivery()} },
	"createAnnouncement":   func(*fixture) vars { return vars{"text": "hello", "audience": "ADMINS"} },
	"updateAnnouncement":   func(f *fixture) vars { return vars{"id": f.announcement(), "text": "again"} },
	"deleteAnnouncement":   func(f *fixture) vars { return vars{"id": f.announcement()} },
	"dismissAnnouncement":  func(f *fixture) vars { return vars{"id": f.announcement()} },
	"createChatEndpoint": func(f *fixture) vars {
		return vars{"name": f.name(), "url": "https://api.example.org/v1", "models": []string{"m"}}
	},
	"updateChatEndpoint": func(f *fixture) vars { return vars{"id": f.endpoint(), "enabled": false} },
	"deleteChatEndpoint": func(f *fixture) vars { return vars{"id": f.endpoint()} },
	"createSession": func(f *fixture) vars {
		return vars{"image": f.startable().Reference, "project": f.project.ID, "slots": vars{"cpu": "1"}}
	},
	"terminateSession": func(f *fixture) vars { return vars{"id": f.session()} },
	"openApp":          func(f *fixture) vars { return vars{"session": f.session(), "app": "desk"} },
	"restartApp":       func(f *fixture) vars { return vars{"session": f.session(), "app": "desk"} },
	"stopApp":          func(f *fixture) vars { return vars{"session": f.session(), "app": "desk"} },
	"shareApp":         func(f *fixture) vars { return vars{"session": f.session(), "app": "desk", "audience": "PROJECT"} },
	"unshareApp":       func(f *fixture) vars { return vars{"session": f.session(), "app": "desk"} },
	"createSessionGroup": func(f *fixture) vars {
		return vars{"name": f.name(), "placement": "SPREAD", "project": f.project.ID}
	},
	"deleteSessionGroup": func(f *fixture) vars {
		return vars{"id": f.Client.SessionGroup.Create().SetName(f.name()).SetPlacement("spread").SetDomain(f.domain).SetProject(f.project).SetOwner(f.owner).SaveX(f.System(f.t)).ID}
	},
	"setSessionTags": func(f *fixture) vars { return vars{"id": f.session(), "tags": []string{"x"}} },
	"restartSession": func(f *fixture) vars { return vars{"id": f.again(nil)} },
	"createSessionArray": func(f *fixture) vars {
		return vars{"indexes": "1-2", "session": vars{"image": f.startable().Reference, "project": f.project.ID, "slots": vars{"cpu": "1"}, "command": []string{"true"}}}
	},
	"cancelSessionArray": func(f *fixture) vars { return vars{"id": f.array()} },
	"retrySessionArray":  func(f *fixture) vars { return vars{"id": f.array()} },
	"createSessionTemplate": func(f *fixture) vars {
		return vars{"name": f.name(), "project": f.project.ID, "request": vars{"image": "i:1", "slots": vars{"cpu": "1"}}}
	},
	"updateSessionTemplate":              func(f *fixture) vars { return vars{"id": f.template(true), "name": f.name() + "y"} },
	"updateSessionTemplate of one's own": func(f *fixture) vars { return vars{"id": f.template(false), "name": f.name() + "y"} },
	"deleteSessionTemplate":              func(f *fixture) vars { return vars{"id": f.template(true)} },
	"deleteSessionTemplate of one's own": func(f *fixture) vars { return vars{"id": f.template(false)} },
	"updatePendingSession":               func(f *fixture) vars { return vars{"id": f.session(), "slots": vars{"cpu": "0.5"}} },
	"renameSession":                      func(f *fixture) vars { return vars{"id": f.session(), "name": f.name() + "y"} },
	"createVfolder":                      func(f *fixture) vars { return vars{"name": f.name(), "project": f.project.ID, "volume": f.volume().ID} },
	"updateVfolder":                      func(f *fixture) vars { return vars{"id": f.folder(), "name": f.name() + "y"} },
	"trashVfolder":                       func(f *fixture) vars { return vars{"id": f.folder()} },
	"restoreVfolder":                     func(f *fixture) vars { return vars{"id": f.trashed(f.folder())} },
	"deleteVfolder":                      func(f *fixture) vars { return vars{"id": f.trashed(f.folder())} },
	"emptyTrash":                         func(f *fixture) vars { f.trashed(f.shared()); return vars{"project": f.project.ID} },
	"cloneVfolder":                       func(f *fixture) vars { return vars{"id": f.folder(), "name": f.name() + "c"} },
	"handOverVfolder":                    func(f *fixture) vars { return vars{"id": f.folder(), "user": f.member().ID} },
	"shareVfolder": func(f *fixture) vars {
		return vars{"id": f.folder(), "emails": []string{f.name() + "@example.org"}, "permission": "READ_ONLY"}
	},
	"updateVfolderShare":  func(f *fixture) vars { return vars{"id": f.share(), "permission": "READ_WRITE"} },
	"revokeVfolderShare":  func(f *fixture) vars { return vars{"id": f.share()} },
	"acceptVfolderShare":  func(f *fixture) vars { return vars{"id": f.share()} },
	"declineVfolderShare": func(f *fixture) vars { return vars{"id": f.share()} },
	"createUpload": func(f *fixture) vars {
		return vars{"vfolder": f.folder(), "files": []vars{{"path": "a", "size": 1}}}
	},
	"createDownload":    func(f *fixture) vars { return vars{"vfolder": f.folder(), "path": ""} },
	"createDirectories": func(f *fixture) vars { return vars{"vfolder": f.folder(), "paths": []string{"d"}} },
	"moveFiles":         func(f *fixture) vars { return vars{"vfolder": f.folder(), "items": moves} },
	"copyFiles":         func(f *fixture) vars { return vars{"vfolder": f.folder(), "items": moves} },
	"deleteFiles":       func(f *fixture) vars { return vars{"vfolder": f.folder(), "paths": []string{"a"}} },

	// A storage of a domain is open to its members, a user's own only to them.
	"createObjectStorage": func(f *fixture) vars {
		return vars{"name": f.name(), "endpoint": "http://127.0.0.1:1", "bucket": "bucket", "domain": f.domain.ID}
	},
	"createObjectStorage of one's own": func(f *fixture) vars {
		return vars{"name": f.name(), "endpoint": "http://127.0.0.1:1", "bucket": "bucket"}
	},
	"updateObjectStorage":              func(f *fixture) vars { return vars{"id": f.objects(true), "name": f.name() + "y"} },
	"updateObjectStorage of one's own": func(f *fixture) vars { return vars{"id": f.objects(false), "name": f.name() + "y"} },
	"testObjectStorage":                func(f *fixture) vars { return vars{"id": f.objects(true)} },
	"testObjectStorage of one's own":   func(f *fixture) vars { return vars{"id": f.objects(false)} },
	"deleteObjectStorage":              func(f *fixture) vars { return vars{"id": f.objects(true)} },
	"deleteObjectStorage of one's own": func(f *fixture) vars { return vars{"id": f.objects(false)} },
	"importFolder":                     func(f *fixture) vars { return vars{"vfolder": f.folder(), "objectStorage": f.objects(true)} },
	"importFolder of a project":        func(f *fixture) vars { return vars{"vfolder": f.shared(), "objectStorage": f.objects(true)} },
	"importFolder of one's own":        func(f *fixture) vars { return vars{"vfolder": f.folder(), "objectStorage": f.objects(false)} },
	"exportFolder":                     func(f *fixture) vars { return vars{"vfolder": f.folder(), "objectStorage": f.objects(true)} },
	"exportFolder of a project":        func(f *fixture) vars { return vars{"vfolder": f.shared(), "objectStorage": f.objects(true)} },

	// A folder of a project is open to its members as well.
	"shareVfolder of a project": func(f *fixture) vars {
		return vars{"id": f.shared(), "emails": []string{f.owner.Email}, "permission": "READ_ONLY"}
	},
	"updateVfolder of a project":  func(f *fixture) vars { return vars{"id": f.shared(), "name": f.name() + "y"} },
	"trashVfolder of a project":   func(f *fixture) vars { return vars{"id": f.shared()} },
	"restoreVfolder of a project": func(f *fixture) vars { return vars{"id": f.trashed(f.shared())} },
	"deleteVfolder of a project":  func(f *fixture) vars { return vars{"id": f.trashed(f.shared())} },
	"cloneVfolder of a project":   func(f *fixture) vars { return vars{"id": f.shared(), "name": f.name() + "c"} },
	"createUpload of a project": func(f *fixture) vars {
		return vars{"vfolder": f.shared(), "files": []vars{{"path": "a", "size": 1}}}
	},
	"createDownload of a project":    func(f *fixture) vars { return vars{"vfolder": f.shared(), "path": ""} },
	"createDirectories of a project": func(f *fixture) vars { return vars{"vfolder": f.shared(), "paths": []string{"d"}} },
	"moveFiles of a project":         func(f *fixture) vars { return vars{"vfolder": f.shared(), "items": moves} },
	"copyFiles of a project":         func(f *fixture) vars { return vars{"vfolder": f.shared(), "items": moves} },
	"deleteFiles of a project":       func(f *fixture) vars { return vars{"vfolder": f.shared(), "paths": []string{"a"}} },

	"createSshKey": func(f *fixture) vars { return vars{"name": f.name()} },
	"deleteSshKey": func(f *fixture) vars {
		k := f.Client.SSHKey.Create().SetName(f.name()).SetPublicKey(f.name()).SetFingerprint(f.name()).SetUser(f.owner)
		return vars{"id": k.SaveX(f.System(f.t)).ID}
	},
	"createKeypair": func(f *fixture) vars { return vars{"name": f.name()} },
	"updateKeypair": func(f *fixture) vars { return vars{"id": f.keypair(), "name": f.name() + "y"} },
	"rotateKeypair": func(f *fixture) vars { return vars{"id": f.keypair()} },
	"deleteKeypair": func(f *fixture) vars { return vars{"id": f.keypair()} },

	"startTotp":               func(*fixture) vars { return nil },
	"confirmTotp":             func(*fixture) vars { return vars{"code": "000000"} },
	"disableTotp":             func(*fixture) vars { return vars{"password": "not it", "code": "000000"} },
	"regenerateRecoveryCodes": func(*fixture) vars { return vars{"code": "000000"} },
	"resetTotp":               func(f *fixture) vars { return vars{"user": f.owner.ID} },
	"resetUserPassword":       func(f *fixture) vars { return vars{"user": f.member().ID} },
	"updateProfile":           func(f *fixture) vars { return vars{"fullName": f.name()} },

	"updateDomain":  func(f *fixture) vars { return vars{"id": f.domain.ID, "description": f.name()} },
	"deleteDomain":  func(f *fixture) vars { return vars{"id": f.domain.ID, "name": f.domain.Name} },
	"deleteUser":    func(f *fixture) vars { return vars{"id": f.owner.ID} },
	"updateProject": func(f *fixture) vars { return vars{"id": f.project.ID, "description": f.name()} },
	"deleteProject": func(f *fixture) vars {
		f.session() // a project with a session cannot be deleted
		return vars{"id": f.project.ID, "name": f.project.Name}
	},
	"importUsers": func(f *fixture) vars {
		return vars{"domain": f.domain.ID, "csv": "email\n" + f.name() + "@example.org\n", "dryRun": true, "passwords": "GENERATED"}
	},
	"createInvitation": func(f *fixture) vars { return vars{"email": f.name() + "@example.org", "domain": f.domain.ID} },
	"revokeInvitation": func(f *fixture) vars {
		i := f.Client.Invitation.Create().SetEmail(f.name() + "@example.org").SetHash(hash()).SetDomain(f.domain)
		return vars{"id": i.SetExpiresAt(time.Now().Add(time.Hour)).SaveX(f.System(f.t)).ID}
	},
	"createIdentityProvider": func(f *fixture) vars {
		return vars{"name": f.name(), "issuer": "https://issuer.example.org", "clientID": "c", "clientSecret": "s", "domain": f.domain.ID}
	},
	"updateIdentityProvider": func(f *fixture) vars { return vars{"id": f.provider(), "displayName": f.name()} },
	"deleteIdentityProvider": func(f *fixture) vars { return vars{"id": f.provider()} },

	"createRole": func(f *fixture) vars { return vars{"name": f.name(), "allows": []vars{}} },
	"updateRole": func(f *fixture) vars { return vars{"id": f.role().ID, "description": f.name()} },
	"deleteRole": func(f *fixture) vars { return vars{"id": f.role().ID} },
	"grantRole": func(f *fixture) vars {
		return vars{"role": f.role().ID, "user": f.fresh().ID, "scope": "DOMAIN", "scopeId": f.domain.ID}
	},
	"revokeRole": func(f *fixture) vars {
		g := f.Client.RoleGrant.Create().SetRole(f.role()).SetUser(f.owner).SetScope("object").SetScopeID(f.project.ID)
		return vars{"id": g.SaveX(f.System(f.t)).ID}
	},

	"updateResourceGroup": func(f *fixture) vars { return vars{"id": f.group().ID, "description": f.name()} },
	"deleteResourceGroup": func(f *fixture) vars { return vars{"id": f.group().ID} },
	"grantResourceGroup":  func(f *fixture) vars { return vars{"resourceGroup": f.group().ID, "user": f.owner.ID} },
	"revokeResourceGroup": func(f *fixture) vars {
		g := f.group()
		f.Client.GroupGrant.Create().SetResourceGroup(g).SetUser(f.owner).ExecX(f.System(f.t))
		return vars{"resourceGroup": g.ID, "user": f.owner.ID}
	},
	"createIdleChecker": func(f *fixture) vars { return vars{"name": f.name(), "kind": "NETWORK", "timeout": 600} },
	"updateIdleChecker": func(f *fixture) vars { return vars{"id": f.checker().ID, "timeout": 700} },
	"deleteIdleChecker": func(f *fixture) vars { return vars{"id": f.checker().ID} },
	"attachIdleChecker": func(f *fixture) vars { return vars{"checker": f.checker().ID, "project": f.project.ID} },
	"detachIdleChecker": func(f *fixture) vars {
		c := f.checker()
		f.Client.IdleBinding.Create().SetChecker(c).SetProject(f.project).ExecX(f.System(f.t))
		return vars{"checker": c.ID, "project": f.project.ID}
	},
	"setSessionIdleExempt": func(f *fixture) vars { return vars{"id": f.session(), "exempt": true} },
	"setShareWeight": func(f *fixture) vars {
		return vars{"resourceGroup": f.group().ID, "user": f.owner.ID, "weight": 2}
	},
	"setShareWeight in all groups": func(f *fixture) vars { return vars{"project": f.project.ID, "weight": 2} },
	"deleteShareWeight": func(f *fixture) vars {
		return vars{"id": f.Client.ShareWeight.Create().SetWeight(2).SetUser(f.owner).SetResourceGroup(f.group()).SaveX(f.System(f.t)).ID}
	},
	"setPrice": func(*fixture) vars { return vars{"slot": "cpu", "amount": "0.25"} },
	"deletePrice": func(f *fixture) vars {
		p := f.Client.Price.Create().SetKind("slot_hour").SetSlot("cpu").SetMicros(1).SetValidFrom(time.Now().Add(time.Hour))
		return vars{"id": p.SaveX(f.System(f.t)).ID}
	},
	"setBudget": func(f *fixture) vars { return vars{"user": f.owner.ID, "hard": "1000000"} },
	"setBudget of a project": func(f *fixture) vars {
		return vars{"project": f.project.ID, "hard": "1000000"}
	},
	"setBudget of a domain": func(f *fixture) vars { return vars{"domain": f.domain.ID, "soft": "1000000"} },
	"setBudget by id":       func(f *fixture) vars { return vars{"id": f.budget(), "soft": "1"} },
	"deleteBudget":          func(f *fixture) vars { return vars{"id": f.budget()} },
	"deleteResourcePolicy":  func(f *fixture) vars { return vars{"id": f.policy().ID} },
	"detachResourcePolicy": func(f *fixture) vars {
		a := f.Client.PolicyAttachment.Create().SetPolicy(f.policy()).SetProject(f.project)
		return vars{"id": a.SaveX(f.System(f.t)).ID}
	},
	"createResourcePreset": func(f *fixture) vars { return vars{"name": f.name(), "slots": vars{"cpu": "1"}} },
	"updateResourcePreset": func(f *fixture) vars { return vars{"id": f.preset(), "description": f.name()} },
	"deleteResourcePreset": func(f *fixture) vars { return vars{"id": f.preset()} },
	"grantVolume": func(f *fixture) vars {
		return vars{"volume": f.volume().ID, "user": f.owner.ID, "permissions": []string{"MOUNT"}}
	},
	"revokeVolume": func(f *fixture) vars {
		g := f.Client.VolumeGrant.Create().SetVolume(f.volume()).SetUser(f.owner).SetPermissions(access.VolumePermissions())
		return vars{"id": g.SaveX(f.System(f.t)).ID}
	},
	"setQuotaScope": func(f *fixture) vars {
		return vars{"volume": f.volume().ID, "user": f.owner.ID, "limitBytes": 1 << 30}
	},
	"setQuotaScope of a project": func(f *fixture) vars {
		return vars{"volume": f.volume().ID, "project": f.project.ID, "limitBytes": 0}
	},
	"deleteStorageProxy": func(f *fixture) vars {
		return vars{"name": f.Client.StorageProxy.Create().SetName(f.name()).SaveX(f.System(f.t)).Name}
	},
	"deleteOrphan": func(f *fixture) vars {
		return vars{"volume": f.volume().ID, "scope": f.owner.ID, "folder": uuid.New()}
	},
	"setRecovery":  func(*fixture) vars { return vars{"on": false} },
	"setRetention": func(*fixture) vars { return vars{"category": "TASKS", "days": 90} },
	"cancelTask":   func(f *fixture) vars { return vars{"id": f.task()} },
	"retryTask":    func(f *fixture) vars { return vars{"id": f.task()} },
}

var moves = []vars{{"from": "a", "to": "b"}}

// trashed moves a folder to the trash.
func (f *fixture) trashed(id uuid.UUID) uuid.UUID {
	f.Client.Vfolder.UpdateOneID(id).SetStatus("trash").SetDeletedAt(time.Now()).ExecX(f.System(f.t))
	return id
}

func (f *fixture) keypair() uuid.UUID {
	return f.Client.Keypair.Create().SetAccessKey(f.name()).SetName(f.name()).SetSecretSealed([]byte("-")).SetUser(f.owner).
		SaveX(f.System(f.t)).ID
}

func (f *fixture) provider() uuid.UUID {
	return f.Client.IdentityProvider.Create().SetName(f.name()).SetIssuer("https://issuer.example.org").SetClientID("c").
		SetClientSecretSealed([]byte("-")).SetDomain(f.domain).SaveX(f.System(f.t)).ID
}

func (f *fixture) role() *ent.Role {
	return f.Client.Role.Create().SetName(f.name()).SaveX(f.System(f.t))
}

func (f *fixture) agent(change func(*ent.AgentCreate)) uuid.UUID {
	a := f.Client.Agent.Create().SetName(f.name()).SetResourceGroup(f.Group)
	change(a)
	return a.SaveX(f.System(f.t)).ID
}

func (f *fixture) checker() *ent.IdleChecker {
	return f.Client.IdleChecker.Create().SetName(f.name()).SetKind("network").SetTimeout(600).SaveX(f.System(f.t))
}

func (f *fixture) group() *ent.ResourceGroup {
	return f.Client.ResourceGroup.Create().SetName(f.name()).SaveX(f.System(f.t))
}

func (f *fixture) preset() uuid.UUID {
	return f.Client.ResourcePreset.Create().SetName(f.name()).SetSlots(resource.Slots{"cpu": 1000}).SaveX(f.System(f.t)).ID
}

// task returns a task that the owner started.
func (f *fixture) task() uuid.UUID {
	return f.Client.Task.Create().SetKind("test").SetInput([]byte("{}")).SetDomainID(f.domain.ID).SetCreatorID(f.owner.ID).
		SaveX(f.System(f.t)).ID
}

func hash() []byte { return []byte(uuid.NewString()) }

// fresh returns a new user of the fixture's domain without a project.
func (f *fixture) fresh() *ent.User {
	return f.Client.User.Create().SetEmail(f.name() + "-fresh@example.org").SetUsername(f.name() + "-fresh").
		SetPasswordHash(identitytest.Password).SetDomain(f.domain).SaveX(f.System(f.t))
}

// member returns a new member of the fixture's project.
func (f *fixture) member() *ent.User {
	u := f.fresh()
	f.Client.Membership.Create().SetUser(u).SetProject(f.project).ExecX(f.System(f.t))
	return u
}

// policy returns a new policy that is attached to the owner.
func (f *fixture) policy() *ent.ResourcePolicy {
	p := f.Client.ResourcePolicy.Create().SetName(f.name()).SaveX(f.System(f.t))
	f.Client.PolicyAttachment.Create().SetPolicy(p).SetUser(f.owner).ExecX(f.System(f.t))
	return p
}

// budget returns a new budget of the owner.
func (f *fixture) budget() uuid.UUID {
	b := f.Client.Budget.Create().SetPeriod("month").SetStartsAt(time.Now()).SetHardMicros(1_000_000_000_000).SetUser(f.owner)
	return b.SaveX(f.System(f.t)).ID
}

func (f *fixture) image() *ent.Image {
	ctx := f.System(f.t)
	r := f.Client.Registry.Create().SetName(f.name() + "i").SetHost(f.name() + "i.example.org").SaveX(ctx)
	return f.Client.Image.Create().SetReference(f.name() + "i.example.org/i:1").SetName("i:1").SetArchitecture("x86_64").
		SetDigest("-").SetRegistry(r).SaveX(ctx)
}

// ownImage is a private image of the fixture's owner.
func (f *fixture) ownImage() uuid.UUID {
	return f.image().Update().SetVisibility("private").SetDomainID(f.domain.ID).SetOwner(f.owner).SaveX(f.System(f.t)).ID
}

// startable returns an image whose registry is open to the domain.
func (f *fixture) startable() *ent.Image {
	i := f.image()
	f.Client.Registry.UpdateOneID(*i.RegistryID).AddDomains(f.domain).ExecX(f.System(f.t))
	return i
}

func (f *fixture) session() uuid.UUID {
	return f.Client.Session.Create().SetName(f.name()).SetType("interactive").SetSlots(nil).
		SetDomainID(f.domain.ID).SetProjectID(f.project.ID).SetOwner(f.owner).SetResourceGroup(f.Group).SetImage(f.image()).
		SaveX(f.System(f.t)).ID
}

// again returns a session that has ended and can be restarted.
func (f *fixture) again(array *uuid.UUID) uuid.UUID {
	return f.Client.Session.Create().SetName(f.name()).SetType("batch").SetCommand([]string{"true"}).SetSlots(resource.Slots{"cpu": 1000}).
		SetDomainID(f.domain.ID).SetProjectID(f.project.ID).SetOwner(f.owner).SetResourceGroup(f.Group).SetImage(f.startable()).
		SetStatus("terminated").SetTerminatedAt(time.Now()).SetNillableArrayID(array).SaveX(f.System(f.t)).ID
}

// array returns an array of the owner.
func (f *fixture) array() uuid.UUID {
	return f.Client.SessionArray.Create().SetName(f.name()).SetIndexes("1").SetSize(1).
		SetDomainID(f.domain.ID).SetProjectID(f.project.ID).SetOwner(f.owner).SaveX(f.System(f.t)).ID
}

// revision describes a revision of a deployment.
func (f *fixture) revision() vars {
	return vars{"request": vars{"image": f.startable().Reference, "slots": vars{"cpu": "1"}, "command": []string{"serve"}}}
}

// deployment returns a deployment of the owner that changes to its second revision.
func (f *fixture) deployment() uuid.UUID {
	ctx := f.System(f.t)
	id := f.Client.Deployment.Create().SetName("m-" + f.name()).SetDomainID(f.domain.ID).SetProjectID(f.project.ID).SetOwner(f.owner).SetWanted(1).SetCurrent(1).SetTarget(2).
		SetStrategy([]byte(`{"Kind":"rolling","MaxSurge":1,"StepTime":1,"Deadline":3600}`)).SetScaling([]byte(`{"Min":1,"Max":1,"ZeroAfter":900}`)).
		SetProgress([]byte(`{}`)).SaveX(ctx).ID
	for number := range 2 {
		f.Client.DeploymentRevision.Create().SetDeploymentID(id).SetNumber(number + 1).SetVariant("custom").SetRequest([]byte(`{"Image":"i:1"}`)).
			SetEngine([]byte(`{"Port":8000}`)).SetImage("i:1").ExecX(ctx)
	}
	return id
}

// notice returns a notice of the owner.
func (f *fixture) notice() uuid.UUID {
	return f.Client.Notice.Create().SetKind("session_failed").SetSeverity("error").SetUserID(f.owner.ID).SaveX(f.System(f.t)).ID
}

// channel returns a channel of the owner, whose address cannot be decrypted, so that a test contacts nothing.
func (f *fixture) channel() uuid.UUID {
	return f.Client.NoticeChannel.Create().SetType("webhook").SetName(f.name()).SetHost("example.org").SetAddressSealed([]byte("x")).SetUserID(f.owner.ID).SaveX(f.System(f.t)).ID
}

// delivery returns a dead letter of the owner.
func (f *fixture) delivery() uuid.UUID {
	return f.Client.NoticeDelivery.Create().SetType("webhook").SetKind("session_failed").SetStatus("dead").SetDueAt(time.Now()).SetExpiresAt(time.Now()).
		SetNoticeID(f.notice()).SetChannelID(f.channel()).SetUserID(f.owner.ID).SaveX(f.System(f.t)).ID
}

// announcement returns an announcement to the members of the fixture's project.
func (f *fixture) announcement() uuid.UUID {
	return f.Client.Announcement.Create().SetText("hello").SetAudience("project").SetScopeID(f.project.ID).SaveX(f.System(f.t)).ID
}

// endpoint returns an endpoint of chats for all domains.
func (f *fixture) endpoint() uuid.UUID {
	return f.Client.ChatEndpoint.Create().SetName(f.name() + "-" + uuid.NewString()[:8]).SetAddress("https://api.example.org/v1").SetModels([]string{"m"}).
		SaveX(f.System(f.t)).ID
}

// asked describes a column of a chat.
func (f *fixture) asked() vars { return vars{"model": vars{"endpoint": f.endpoint(), "name": "m"}} }

// chat returns a chat of the owner with two columns.
func (f *fixture) chat() uuid.UUID {
	m := conversation.Model{Name: "m", EndpointID: new(f.endpoint())}
	return f.Client.Chat.Create().SetDomainID(f.domain.ID).SetOwnerID(f.owner.ID).SetNextNumber(2).
		SetAsks([]conversation.Column{{Number: 0, Model: m}, {Number: 1, Model: m}}).SaveX(f.System(f.t)).ID
}

// turn returns a prompt of a chat.
func (f *fixture) turn(chat uuid.UUID) uuid.UUID {
	return f.Client.ChatTurn.Create().SetChatID(chat).SetPrompt("hello").SaveX(f.System(f.t)).ID
}

// answer returns an answer to a prompt that has ended.
func (f *fixture) answer(turn uuid.UUID, column int) uuid.UUID {
	t := f.Client.ChatTurn.GetX(f.System(f.t), turn)
	return f.Client.ChatAnswer.Create().SetChatID(t.ChatID).SetTurnID(turn).SetOwnerID(f.owner.ID).SetPlace(column).SetAsked(conversation.Asked{}).
		SetStatus("done").SetText("hello").SetEndedAt(time.Now()).SaveX(f.System(f.t)).ID
}

// modelKey returns a key of the owner for a deployment.
func (f *fixture) modelKey() uuid.UUID {
	return f.Client.DeploymentKey.Create().SetName(f.name()).SetPrefix("x").SetHash(hash()).SetDomainID(f.domain.ID).SetUser(f.owner).
		SetDeploymentID(f.deployment()).SaveX(f.System(f.t)).ID
}

// template returns a template of the fixture's project, or of its owner.
func (f *fixture) template(shared bool) uuid.UUID {
	c := f.Client.SessionTemplate.Create().SetName(f.name()).SetDomain(f.domain).SetRequest([]byte(`{"Image":"i:1"}`))
	if shared {
		return c.SetProject(f.project).SaveX(f.System(f.t)).ID
	}
	return c.SetOwner(f.owner).SaveX(f.System(f.t)).ID
}

// objects returns an object storage of the fixture's domain, or of its owner.
func (f *fixture) objects(domain bool) uuid.UUID {
	c := f.Client.ObjectStorage.Create().SetName(f.name()).SetEndpoint("http://127.0.0.1:1").SetBucket("bucket")
	if domain {
		return c.SetDomain(f.domain).SaveX(f.System(f.t)).ID
	}
	return c.SetOwner(f.owner).SaveX(f.System(f.t)).ID
}

func (f *fixture) volume() *ent.Volume {
	ctx := f.System(f.t)
	p := f.Client.StorageProxy.Create().SetName(f.name()).SaveX(ctx)
	v := f.Client.Volume.Create().SetName(f.name()).SetProxy(p).SetCapabilities([]string{"scope", "quota-bytes"}).SaveX(ctx)
	f.Client.VolumeGrant.Create().SetVolume(v).SetPermissions(access.VolumePermissions()).ExecX(ctx)
	return v
}

// share returns an invitation to a folder of the owner.
func (f *fixture) share() uuid.UUID {
	return f.Client.VfolderShare.Create().SetVfolderID(f.folder()).SetDomainID(f.domain.ID).SetEmail(f.name() + "@example.org").
		SetPermission(access.ReadOnly).SaveX(f.System(f.t)).ID
}

// folder returns a folder of the owner.
func (f *fixture) folder() uuid.UUID {
	ctx := f.System(f.t)
	scope := f.Client.QuotaScope.Create().SetKind("user").SetHolderID(f.owner.ID).SetDomainID(f.domain.ID).SetVolume(f.volume()).SaveX(ctx)
	return f.Client.Vfolder.Create().SetName(f.name()).SetPath("p").SetDomainID(f.domain.ID).SetOwner(f.owner).SetCreator(f.owner).
		SetQuotaScope(scope).SaveX(ctx).ID
}

// shared returns a folder of the project that the owner created.
func (f *fixture) shared() uuid.UUID {
	ctx := f.System(f.t)
	scope := f.Client.QuotaScope.Create().SetKind("project").SetHolderID(f.project.ID).SetDomainID(f.domain.ID).SetVolume(f.volume()).SaveX(ctx)
	return f.Client.Vfolder.Create().SetName(f.name()).SetPath("p").SetDomainID(f.domain.ID).SetProject(f.project).SetCreator(f.owner).
		SetQuotaScope(scope).SaveX(ctx).ID
}
