import { describe, expect, it } from "vitest";
import { sshCommands } from "./ssh";

const key = "ssh-ed25519 AAAAC3Nza gateway\n";
const session = { id: "0193", name: "train" };

describe("SSH commands", () => {
  it("contain the port of the gateway in the syntax of each program", () => {
    const lines = sshCommands({ host: "ssh.example.org", port: 2222, hostKey: key }, session);
    expect(lines).toMatchObject({
      shell: "ssh -p 2222 0193@ssh.example.org",
      upload: "scp -P 2222 -r ./data 0193@ssh.example.org:",
      mirror: "rsync -av -e 'ssh -p 2222' ./data/ 0193@ssh.example.org:data/",
      code: "code --remote ssh-remote+0193@ssh.example.org:2222 /home/work",
      codeLink: "vscode://vscode-remote/ssh-remote+0193@ssh.example.org:2222/home/work",
      trust: "echo '[ssh.example.org]:2222 ssh-ed25519 AAAAC3Nza gateway' >> ~/.ssh/known_hosts",
      config: "Host berth-train\n  HostName ssh.example.org\n  Port 2222\n  User 0193",
    });
    expect(lines.forward(8888)).toBe("ssh -N -L 8888:127.0.0.1:8888 -p 2222 0193@ssh.example.org");
  });

  it("leave out the default port of SSH", () =>
    expect(sshCommands({ host: "ssh.example.org", port: 22, hostKey: key }, session)).toMatchObject({
      shell: "ssh 0193@ssh.example.org",
      upload: "scp -r ./data 0193@ssh.example.org:",
      mirror: "rsync -av ./data/ 0193@ssh.example.org:data/",
      trust: "echo 'ssh.example.org ssh-ed25519 AAAAC3Nza gateway' >> ~/.ssh/known_hosts",
    }));

  it("put brackets around an IPv6 address before a colon", () => {
    const lines = sshCommands({ host: "fd00::7", port: 2222, hostKey: key }, session);
    expect(lines.shell).toBe("ssh -p 2222 0193@fd00::7");
    expect(lines.download).toBe("scp -P 2222 -r 0193@[fd00::7]:results .");
    expect(lines.code).toBe("code --remote ssh-remote+0193@[fd00::7]:2222 /home/work");
  });

  it("convert any session name to a host alias", () =>
    expect(sshCommands({ host: "h", port: 22, hostKey: key }, { id: "1", name: "my run; rm *" }).alias).toBe(
      "berth-my-run-rm-",
    ));
});
