/** The pages of the account, in the order of their navigation. */
export const pages = [
  { to: "/account/profile", label: "Profile" },
  { to: "/account/password", label: "Password" },
  { to: "/account/second-step", label: "Two-step login" },
  { to: "/account/logins", label: "Logins" },
  { to: "/account/tokens", label: "Access tokens" },
] as const;
