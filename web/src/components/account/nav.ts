/** The pages of the account, in the order of their navigation. */
export const pages = [
  { to: "/account/profile", label: "Profile" },
  { to: "/account/password", label: "Password" },
  { to: "/account/second-step", label: "Two-step login" },
  { to: "/account/logins", label: "Logins" },
  { to: "/account/tokens", label: "Access tokens" },
  { to: "/account/keypairs", label: "Keypairs" },
  { to: "/account/ssh-keys", label: "SSH keys" },
  { to: "/account/model-keys", label: "Keys for models" },
  { to: "/account/images", label: "My images" },
  { to: "/account/limits", label: "My limits" },
  { to: "/account/usage", label: "Usage" },
  { to: "/account/statistics", label: "Statistics" },
  { to: "/account/notices", label: "Notices" },
  { to: "/account/activity", label: "Activity" },
] as const;
