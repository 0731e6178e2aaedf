package noticekind

import (
	"strconv"
	"strings"
)

// Language is a language of mails.
type Language string

// The languages.
const (
	English  Language = "en"
	Korean   Language = "ko"
	Japanese Language = "ja"
)

// sentence is the text of a kind: about one event, and about several. Braces contain the names of parameters.
type sentence struct{ one, many string }

// Text returns the sentence of a notice. A parameter that is missing is empty. Line breaks in parameters become spaces.
func Text(l Language, k Kind, parameters map[string]string, count int) string {
	of, known := sentences[l][k]
	if !known {
		of = sentences[English][k]
	}
	text := of.one
	if count > 1 && of.many != "" {
		text = of.many
	}
	return fill(text, parameters, count)
}

// fill replaces each placeholder once: a parameter that looks like a placeholder stays as it is.
func fill(text string, parameters map[string]string, count int) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		if name == "count" {
			out.WriteString(strconv.Itoa(count))
		} else {
			out.WriteString(oneLine(parameters[name]))
		}
		text = after
	}
}

// oneLine replaces control characters, so that no value begins a new line of a mail or of a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

// sentences are the texts of the kinds, by language.
var sentences = map[Language]map[Kind]sentence{
	English: {
		SessionStarted:  {"Session {name} has started.", "{count} sessions have started, among them {name}."},
		SessionEnded:    {"Session {name} has ended: {reason}.", "{count} sessions have ended, among them {name}."},
		SessionFailed:   {"Session {name} has failed: {reason}.", "{count} sessions have failed, among them {name}: {reason}."},
		SessionIdle:     {"Session {name} ends soon because it is idle: {reason}.", "{count} sessions end soon because they are idle, among them {name}."},
		SessionLifetime: {"Session {name} ends soon: {reason}.", "{count} sessions end soon, among them {name}."},
		FolderShared:    {"{by} has invited you to the folder {name}.", "You were invited to {count} folders, among them {name}."},
		Quota:           {"{percent} % of the storage quota on {name} is used.", ""},
		Budget:          {"{percent} % of the budget {name} is used: {spent} of {limit}.", ""},
		ReplicaFailed:   {"A replica of deployment {name} has failed: {reason}.", "{count} replicas of deployments have failed, among them one of {name}: {reason}."},
		RolledBack:      {"Deployment {name} went back to its earlier revision: {reason}.", ""},
		BuildDone:       {"Image {name} was built.", "{count} images were built, among them {name}."},
		BuildFailed:     {"The build of image {name} has failed: {reason}.", "{count} builds of images have failed, among them that of {name}: {reason}."},
		ChannelDisabled: {"Channel {name} was disabled, because its deliveries have failed for {days} days: {reason}.", ""},
		AgentLost:       {"Machine {name} does not answer.", "{count} machines do not answer, among them {name}."},
		AgentBack:       {"Machine {name} answers again.", "{count} machines answer again, among them {name}."},
		PluginDown:      {"Plugin {plugin} on machine {name} does not run: {reason}.", "{count} plugins do not run, among them {plugin} on machine {name}."},
		StorageDown:     {"Storage proxy {name} does not answer.", "{count} storage proxies do not answer, among them {name}."},
		Certificate:     {"The certificate of {name} expires on {expires}.", ""},
		DeadLetter:      {"Deliveries of notices could not be sent within 24 hours: {total}.", ""},
		Test:            {"This is a test of channel {name}.", ""},
	},
	Korean: {
		SessionStarted:  {"세션 {name}이(가) 시작되었습니다.", "{name} 등 세션 {count}개가 시작되었습니다."},
		SessionEnded:    {"세션 {name}이(가) 종료되었습니다: {reason}.", "{name} 등 세션 {count}개가 종료되었습니다."},
		SessionFailed:   {"세션 {name}이(가) 실패했습니다: {reason}.", "{name} 등 세션 {count}개가 실패했습니다: {reason}."},
		SessionIdle:     {"유휴 상태인 세션 {name}이(가) 곧 종료됩니다: {reason}.", "유휴 상태인 세션 {count}개({name} 등)가 곧 종료됩니다."},
		SessionLifetime: {"세션 {name}이(가) 곧 종료됩니다: {reason}.", "{name} 등 세션 {count}개가 곧 종료됩니다."},
		FolderShared:    {"{by} 님이 폴더 {name}에 초대했습니다.", "{name} 등 폴더 {count}개에 초대받았습니다."},
		Quota:           {"{name}의 저장 공간 할당량을 {percent} % 사용했습니다.", ""},
		Budget:          {"예산 {name}을(를) {percent} % 사용했습니다: {limit} 중 {spent}.", ""},
		ReplicaFailed:   {"배포 {name}의 복제본이 실패했습니다: {reason}.", "{name} 등 배포의 복제본 {count}개가 실패했습니다: {reason}."},
		RolledBack:      {"배포 {name}이(가) 이전 리비전으로 롤백되었습니다: {reason}.", ""},
		BuildDone:       {"이미지 {name}의 빌드가 완료되었습니다.", "{name} 등 이미지 {count}개의 빌드가 완료되었습니다."},
		BuildFailed:     {"이미지 {name}의 빌드가 실패했습니다: {reason}.", "{name} 등 이미지 {count}개의 빌드가 실패했습니다: {reason}."},
		ChannelDisabled: {"{days}일 동안 전송에 실패하여 채널 {name}을(를) 비활성화했습니다: {reason}.", ""},
		AgentLost:       {"머신 {name}이(가) 응답하지 않습니다.", "{name} 등 머신 {count}대가 응답하지 않습니다."},
		AgentBack:       {"머신 {name}이(가) 다시 응답합니다.", "{name} 등 머신 {count}대가 다시 응답합니다."},
		PluginDown:      {"머신 {name}의 플러그인 {plugin}이(가) 실행되고 있지 않습니다: {reason}.", "머신 {name}의 {plugin} 등 플러그인 {count}개가 실행되고 있지 않습니다."},
		StorageDown:     {"스토리지 프록시 {name}이(가) 응답하지 않습니다.", "{name} 등 스토리지 프록시 {count}개가 응답하지 않습니다."},
		Certificate:     {"{name}의 인증서가 {expires}에 만료됩니다.", ""},
		DeadLetter:      {"24시간 안에 전송하지 못한 알림이 {total}건 있습니다.", ""},
		Test:            {"채널 {name}의 테스트입니다.", ""},
	},
	Japanese: {
		SessionStarted:  {"セッション {name} が開始しました。", "{name} など {count} 件のセッションが開始しました。"},
		SessionEnded:    {"セッション {name} が終了しました: {reason}。", "{name} など {count} 件のセッションが終了しました。"},
		SessionFailed:   {"セッション {name} が失敗しました: {reason}。", "{name} など {count} 件のセッションが失敗しました: {reason}。"},
		SessionIdle:     {"アイドル状態のセッション {name} はまもなく終了します: {reason}。", "{name} などアイドル状態のセッション {count} 件がまもなく終了します。"},
		SessionLifetime: {"セッション {name} はまもなく終了します: {reason}。", "{name} など {count} 件のセッションがまもなく終了します。"},
		FolderShared:    {"{by} さんがフォルダー {name} に招待しました。", "{name} など {count} 件のフォルダーに招待されました。"},
		Quota:           {"{name} のストレージ割り当ての {percent} % を使用しています。", ""},
		Budget:          {"予算 {name} の {percent} % を使用しています: {limit} のうち {spent}。", ""},
		ReplicaFailed:   {"デプロイメント {name} のレプリカが失敗しました: {reason}。", "{name} などデプロイメントのレプリカ {count} 件が失敗しました: {reason}。"},
		RolledBack:      {"デプロイメント {name} は以前のリビジョンに戻りました: {reason}。", ""},
		BuildDone:       {"イメージ {name} のビルドが完了しました。", "{name} など {count} 件のイメージのビルドが完了しました。"},
		BuildFailed:     {"イメージ {name} のビルドが失敗しました: {reason}。", "{name} など {count} 件のイメージのビルドが失敗しました: {reason}。"},
		ChannelDisabled: {"{days} 日間配信に失敗したため、チャネル {name} を無効にしました: {reason}。", ""},
		AgentLost:       {"マシン {name} が応答しません。", "{name} など {count} 台のマシンが応答しません。"},
		AgentBack:       {"マシン {name} が再び応答しています。", "{name} など {count} 台のマシンが再び応答しています。"},
		PluginDown:      {"マシン {name} のプラグイン {plugin} が動作していません: {reason}。", "マシン {name} の {plugin} など {count} 件のプラグインが動作していません。"},
		StorageDown:     {"ストレージプロキシ {name} が応答しません。", "{name} など {count} 件のストレージプロキシが応答しません。"},
		Certificate:     {"{name} の証明書は {expires} に期限切れになります。", ""},
		DeadLetter:      {"24 時間以内に配信できなかった通知があります: {total} 件。", ""},
		Test:            {"チャネル {name} のテストです。", ""},
	},
}
