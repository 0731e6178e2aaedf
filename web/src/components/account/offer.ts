import { graphql } from "../../api/graphql";

/** Whether people sign up here by themselves, and how; anybody may ask. */
export const SignUpOfferQuery = graphql(`query SignUpOffer { signUpOffer { mode named } }`);
